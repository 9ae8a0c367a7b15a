//! Whose files are on the other side of a copy: numbers of users and groups as they are, mapped,
//! or all the same.

use steadfast_vfs::{Attr, Timestamp};

/// Which numbers of users and groups a copy gets.
///
/// ```
/// use steadfast::{Image, tree::{Options, OwnerMap}};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("file"), "text")?;
/// let fs = Image::in_memory(16 << 20).mount()?;
/// let owners = OwnerMap::new().all(7, 8);
/// Options::new().owners(owners).copy_in(&fs, folder.path().join("file"), "/")?;
/// assert_eq!(fs.metadata("/file")?.uid(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerMap {
    all: Option<(u32, u32)>,
    users: Vec<IdRange>,
    groups: Vec<IdRange>,
}

/// So many numbers from one on become those from another one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IdRange {
    from: u32,
    to: u32,
    count: u32,
}

impl OwnerMap {
    /// As they are.
    ///
    /// ```
    /// assert_eq!(steadfast::tree::OwnerMap::new(), Default::default());
    /// ```
    pub fn new() -> OwnerMap {
        OwnerMap::default()
    }

    /// Everything belongs to this user and group. Access control lists keep the numbers that the
    /// maps give them.
    ///
    /// ```
    /// let root = steadfast::tree::OwnerMap::new().all(0, 0);
    /// ```
    #[must_use]
    pub fn all(mut self, uid: u32, gid: u32) -> OwnerMap {
        self.all = Some((uid, gid));
        self
    }

    /// The users from `from` on become those from `to` on, `count` of them; others stay. Of several
    /// maps the first that has a number counts.
    ///
    /// ```
    /// // What a user namespace shows as root is user 100000 outside of it.
    /// let outside = steadfast::tree::OwnerMap::new().users(0, 100_000, 65_536);
    /// ```
    #[must_use]
    pub fn users(mut self, from: u32, to: u32, count: u32) -> OwnerMap {
        self.users.push(IdRange { from, to, count });
        self
    }

    /// The same for groups.
    ///
    /// ```
    /// let outside = steadfast::tree::OwnerMap::new().groups(0, 100_000, 65_536);
    /// ```
    #[must_use]
    pub fn groups(mut self, from: u32, to: u32, count: u32) -> OwnerMap {
        self.groups.push(IdRange { from, to, count });
        self
    }

    fn user(&self, uid: u32) -> u32 {
        mapped(&self.users, uid)
    }

    fn group(&self, gid: u32) -> u32 {
        mapped(&self.groups, gid)
    }
}

fn mapped(ranges: &[IdRange], id: u32) -> u32 {
    let of = |range: &IdRange| {
        let distance = id.checked_sub(range.from).filter(|distance| *distance < range.count)?;
        range.to.checked_add(distance)
    };
    ranges.iter().find_map(of).unwrap_or(id)
}

/// What becomes other than it was on the way.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    pub owners: OwnerMap,
    /// Later times become this one.
    pub newest: Option<Timestamp>,
    /// Names come in their order, and each object was last read when it was last changed: so the
    /// copies of one tree are the same.
    pub by_name: bool,
}

impl Changes {
    /// Owner and group on the other side.
    pub fn owner(&self, uid: u32, gid: u32) -> (u32, u32) {
        self.owners.all.unwrap_or_else(|| (self.owners.user(uid), self.owners.group(gid)))
    }

    /// Times of last read and last change on the other side.
    pub fn times(&self, atime: Timestamp, mtime: Timestamp) -> (Timestamp, Timestamp) {
        let atime = if self.by_name { mtime } else { atime };
        match self.newest {
            Some(newest) => (atime.min(newest), mtime.min(newest)),
            None => (atime, mtime),
        }
    }

    /// The same of all that `attr` says.
    pub fn of(&self, attr: &Attr) -> Attr {
        let (uid, gid) = self.owner(attr.uid, attr.gid);
        let (atime, mtime) = self.times(attr.atime, attr.mtime);
        Attr { uid, gid, atime, mtime, ..*attr }
    }

    /// An attribute's value on the other side: access control lists have numbers in them.
    pub fn value(&self, name: &[u8], value: &mut [u8]) {
        if matches!(name, steadfast_tar::ACCESS_ACL | steadfast_tar::DEFAULT_ACL) {
            steadfast_tar::map_ids(value, |id| self.owners.user(id), |id| self.owners.group(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_mapped_by_the_first_range_that_has_them() {
        let map = OwnerMap::new().users(0, 100_000, 1000).users(5, 7, 1).groups(3, 0, 1);
        assert_eq!([0, 5, 999, 1000].map(|id| map.user(id)), [100_000, 100_005, 100_999, 1000]);
        assert_eq!([2, 3, 4].map(|id| map.group(id)), [2, 0, 4]);
        let high = OwnerMap::new().users(1, u32::MAX, 10);
        assert_eq!([1, 2].map(|id| high.user(id)), [u32::MAX, 2]);
    }

    #[test]
    fn one_owner_for_all_and_no_time_after_the_newest() {
        let at = |secs| Timestamp { secs, nanos: 5 };
        let owners = OwnerMap::new().all(1, 2);
        let changes = Changes { owners, newest: Some(at(10)), by_name: true };
        assert_eq!(changes.owner(7, 8), (1, 2));
        assert_eq!(changes.times(at(99), at(3)), (at(3), at(3)));
        assert_eq!(changes.times(at(1), at(30)), (at(10), at(10)));
        assert_eq!(Changes::default().times(at(99), at(3)), (at(99), at(3)));
    }
}
