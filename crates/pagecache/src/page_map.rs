//! A map from a file's page numbers to values, ordered by page number.
//!
//! Adjacent pages are stored in groups, and the last used group is cached: the next page of a
//! sequential reader or writer is found without a search, as in the kernel's xarray
//! (`Documentation/core-api/xarray.rst`), whose leaves hold 64 pages. Here groups hold 8, so that a
//! file with scattered pages costs little more than a tree of single pages.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

/// Pages a group.
const GROUP: u64 = 8;

/// A map from page numbers.
#[derive(Debug)]
pub(crate) struct PageMap<V> {
    /// By number of the group: where it is in `groups`. A group here has a page.
    index: BTreeMap<u64, u32>,
    groups: Vec<[Option<V>; GROUP as usize]>,
    /// Empty places in `groups`.
    free: Vec<u32>,
    /// The group that was looked at last, if it is still there.
    last: Cell<Option<(u64, u32)>>,
    len: usize,
}

impl<V> Default for PageMap<V> {
    fn default() -> Self {
        PageMap {
            index: BTreeMap::new(),
            groups: Vec::new(),
            free: Vec::new(),
            last: Cell::new(None),
            len: 0,
        }
    }
}

fn split(page: u64) -> (u64, usize) {
    (page / GROUP, (page % GROUP) as usize)
}

impl<V> PageMap<V> {
    /// How many pages there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the group is in `groups`.
    fn find(&self, group: u64) -> Option<usize> {
        if let Some((last, at)) = self.last.get()
            && last == group
        {
            return Some(at as usize);
        }
        let at = *self.index.get(&group)?;
        self.last.set(Some((group, at)));
        Some(at as usize)
    }

    pub(crate) fn get(&self, page: u64) -> Option<&V> {
        if self.len == 0 {
            return None;
        }
        let (group, slot) = split(page);
        self.groups[self.find(group)?][slot].as_ref()
    }

    pub(crate) fn get_mut(&mut self, page: u64) -> Option<&mut V> {
        if self.len == 0 {
            return None;
        }
        let (group, slot) = split(page);
        let at = self.find(group)?;
        self.groups[at][slot].as_mut()
    }

    pub(crate) fn contains(&self, page: u64) -> bool {
        self.get(page).is_some()
    }

    /// What the page had before.
    pub(crate) fn insert(&mut self, page: u64, value: V) -> Option<V> {
        let (group, slot) = split(page);
        let at = self.find(group).unwrap_or_else(|| self.add(group));
        let before = self.groups[at][slot].replace(value);
        self.len += usize::from(before.is_none());
        before
    }

    fn add(&mut self, group: u64) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            if self.groups.len() == self.groups.capacity() {
                // By a quarter: twice as much as is needed would count in a cache of memory.
                self.groups.reserve_exact((self.groups.len() / 4).max(4));
            }
            self.groups.push([const { None }; GROUP as usize]);
            // OK to expect: 2^32 groups are 128 TiB of pages.
            u32::try_from(self.groups.len() - 1).expect("fewer than 2^32 groups of pages")
        });
        self.index.insert(group, at);
        self.last.set(Some((group, at)));
        at as usize
    }

    pub(crate) fn remove(&mut self, page: u64) -> Option<V> {
        if self.len == 0 {
            return None;
        }
        let (group, slot) = split(page);
        let at = self.find(group)?;
        let before = self.groups[at][slot].take()?;
        self.len -= 1;
        if self.len == 0 {
            // The memory goes back.
            *self = PageMap::default();
        } else if self.groups[at].iter().all(Option::is_none) {
            self.index.remove(&group);
            self.last.set(None);
            // OK to expect: it came from a u32.
            self.free.push(u32::try_from(at).expect("a place that was given"));
        }
        Some(before)
    }

    /// The pages of a range, ascending.
    pub(crate) fn range(&self, pages: Range<u64>) -> impl Iterator<Item = (u64, &V)> {
        let groups = match pages.is_empty() || self.len == 0 {
            true => 0..0,
            false => pages.start / GROUP..(pages.end - 1) / GROUP + 1,
        };
        let all = self.index.range(groups).flat_map(|(group, at)| {
            let first = group * GROUP;
            (first..)
                .zip(&self.groups[*at as usize])
                .filter_map(|(page, v)| Some((page, v.as_ref()?)))
        });
        all.skip_while(move |(page, _)| *page < pages.start)
            .take_while(move |(page, _)| *page < pages.end)
    }

    /// What there is, by ascending page.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.range(0..u64::MAX).map(|(_, v)| v)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_neighbour_is_found_without_a_search_and_never_a_stale_one() {
        let mut map = PageMap::default();
        for page in [7, 8, 9, 1 << 40] {
            assert_eq!(map.insert(page, page), None);
        }
        assert_eq!((map.get(8), map.get(7), map.get(10)), (Some(&8), Some(&7), None));
        assert_eq!((map.remove(8), map.remove(9), map.get(9)), (Some(8), Some(9), None));
        // The place of the second group has another now.
        map.insert(80, 80);
        assert_eq!((map.get(8), map.get(80), map.len()), (None, Some(&80), 3));
        assert_eq!(map.range(0..u64::MAX).map(|(p, _)| p).collect::<Vec<_>>(), [7, 80, 1 << 40]);
        assert_eq!(map.range(8..80).count() + map.range(80..80).count(), 0);
    }

    proptest! {
        #[test]
        fn does_what_a_tree_does(
            steps in prop::collection::vec((0_u8..4, 0_u64..60, 0_u64..30), 1..200),
        ) {
            let (mut map, mut tree) = (PageMap::default(), BTreeMap::new());
            for (what, page, more) in steps {
                // Two places far apart, so that groups come and go.
                let page = page + (more % 2) * (1 << 33);
                match what {
                    0 | 1 => prop_assert_eq!(map.insert(page, more), tree.insert(page, more)),
                    2 => prop_assert_eq!(map.remove(page), tree.remove(&page)),
                    _ => prop_assert_eq!(map.get_mut(page), tree.get_mut(&page)),
                }
                let pages = page..page + more;
                let ours: Vec<_> = map.range(pages.clone()).collect();
                let theirs: Vec<_> = tree.range(pages).map(|(p, v)| (*p, v)).collect();
                prop_assert_eq!(ours, theirs);
                prop_assert_eq!((map.len(), map.is_empty()), (tree.len(), tree.is_empty()));
                prop_assert_eq!(map.contains(page + 1), tree.contains_key(&(page + 1)));
            }
            prop_assert!(map.values().eq(tree.values()));
        }
    }
}
