//! Who uses which cluster (without `bigalloc`: block): a bitmap a group, made when the first of its
//! clusters is claimed.

use steadfast_ext4_format::RangeSet;
use steadfast_ext4_format::ondisk::{GroupNo, Layout};

/// Clusters that have an owner.
pub(super) struct Claims {
    groups: Vec<Option<Box<[u64]>>>,
    /// Blocks of metadata, where several kinds of it may share a cluster.
    metadata: RangeSet,
    /// First block of group 0.
    first: u64,
    /// Clusters a group.
    per_group: u64,
    /// Blocks a cluster.
    per_cluster: u64,
    end: u64,
}

impl Claims {
    pub(super) fn new(layout: &Layout) -> Self {
        Claims {
            groups: vec![None; layout.groups as usize],
            metadata: RangeSet::new(),
            first: layout.first_data_block,
            per_group: u64::from(layout.clusters_per_group()),
            per_cluster: u64::from(layout.blocks_per_cluster),
            end: layout.blocks_count,
        }
    }

    /// Claims the clusters of `[start, start + len)` blocks, which must lie in the file system.
    /// Calls `taken` with each run of blocks, in whole clusters, that had an owner already.
    pub(super) fn claim(&mut self, start: u64, len: u64, mut taken: impl FnMut(u64, u64)) {
        debug_assert!(start >= self.first && start + len <= self.end);
        let (first, ratio) = (self.first, self.per_cluster);
        let mut reported = |cluster: u64, n: u64| taken(first + cluster * ratio, n * ratio);
        let (mut at, end) = ((start - first) / ratio, (start + len - first).div_ceil(ratio));
        let (mut run, mut run_len) = (0, 0);
        while at < end {
            let (group, bit) = ((at / self.per_group) as usize, at % self.per_group);
            let words = (self.per_group as usize).div_ceil(64);
            let map = self.groups[group].get_or_insert_with(|| vec![0; words].into_boxed_slice());
            let word = &mut map[(bit / 64) as usize];
            // As many as lie in this word, in this group and in the range.
            let n = (64 - bit % 64).min(self.per_group - bit).min(end - at);
            let mask = (u64::MAX >> (64 - n)) << (bit % 64);
            let already = *word & mask;
            *word |= mask;
            if already != 0 {
                for i in 0..n {
                    if already >> (bit % 64 + i) & 1 == 0 {
                        continue;
                    }
                    if run_len > 0 && run + run_len == at + i {
                        run_len += 1;
                    } else {
                        if run_len > 0 {
                            reported(run, run_len);
                        }
                        (run, run_len) = (at + i, 1);
                    }
                }
            }
            at += n;
        }
        if run_len > 0 {
            reported(run, run_len);
        }
    }

    /// As [`claim`](Self::claim), for metadata of the groups, all of which is claimed before
    /// anything else: different kinds of it may share a cluster, but no block.
    pub(super) fn claim_metadata(&mut self, start: u64, len: u64, mut taken: impl FnMut(u64, u64)) {
        if self.per_cluster == 1 {
            return self.claim(start, len, taken);
        }
        self.metadata.within(start, start + len).for_each(|(s, e)| taken(s, e - s));
        self.metadata.insert(start, start + len);
        self.claim(start, len, |_, _| {});
    }

    /// Claims one block; whether it was free.
    pub(super) fn claim_one(&mut self, block: u64) -> bool {
        let mut free = true;
        self.claim(block, 1, |_, _| free = false);
        free
    }

    /// The bitmap of a group, 64 clusters a word; `None` if nothing in it is claimed.
    pub(super) fn group(&self, group: GroupNo) -> Option<&[u64]> {
        self.groups.get(group.0 as usize)?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(per_group: u64, groups: usize) -> Claims {
        let end = 1 + per_group * groups as u64;
        let (groups, metadata) = (vec![None; groups], RangeSet::new());
        Claims { groups, metadata, first: 1, per_group, per_cluster: 1, end }
    }

    #[test]
    fn what_is_claimed_twice_is_reported_in_runs() {
        let mut c = claims(200, 4);
        let mut reported = Vec::new();
        c.claim(1, 800, |s, n| reported.push((s, n)));
        assert!(reported.is_empty());
        c.claim(60, 300, |s, n| reported.push((s, n)));
        assert_eq!(reported, [(60, 300)]);
        let mut c = claims(200, 4);
        assert!(c.claim_one(70) && c.claim_one(72) && !c.claim_one(72));
        reported.clear();
        c.claim(60, 20, |s, n| reported.push((s, n)));
        assert_eq!(reported, [(70, 1), (72, 1)]);
        assert!(c.group(GroupNo(1)).is_none() && c.group(GroupNo(0)).is_some());
    }

    #[test]
    fn clusters_are_claimed_whole_and_shared_by_metadata_only() {
        let mut c = Claims { first: 0, per_cluster: 16, end: 16 * 400, ..claims(200, 2) };
        let mut reported = Vec::new();
        c.claim_metadata(0, 3, |s, n| reported.push((s, n)));
        c.claim_metadata(3, 14, |s, n| reported.push((s, n)));
        assert!(reported.is_empty());
        c.claim_metadata(2, 2, |s, n| reported.push((s, n)));
        assert_eq!(reported, [(2, 2)]);
        assert!(!c.claim_one(20) && c.claim_one(32) && !c.claim_one(47));
        assert_eq!(c.group(GroupNo(0)), Some(&[7, 0, 0, 0][..]));
    }
}
