//! Deals cases to shards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// By the numbers of their names, one to each shard in turn: what is beside each other in the plan
/// (the seeds of one expensive variant) is spread, and shards differ by one case at most.
pub(crate) fn by_number(numbers: &[u64], shards: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    // OK to index, here and below: the order is of these places.
    order.sort_unstable_by_key(|at| (numbers[*at], *at));
    let mut dealt = vec![0; numbers.len()];
    for (at, shard) in order.into_iter().zip((0..shards.max(1)).cycle()) {
        dealt[at] = shard;
    }
    dealt
}

/// By what they took before: the longest first, each to the shard that has the least until then.
pub(crate) fn by_seconds(seconds: &[f64], numbers: &[u64], shards: u32) -> Vec<u32> {
    /// Whole microseconds have an order.
    fn micros(seconds: f64) -> u64 {
        // OK to cast: it saturates; a case without a time counts as the shortest.
        ((seconds * 1e6) as u64).max(1)
    }
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_unstable_by_key(|at| (Reverse(micros(seconds[*at])), numbers[*at], *at));
    let mut heap: BinaryHeap<Reverse<(u64, u32)>> =
        (0..shards.max(1)).map(|shard| Reverse((0, shard))).collect();
    let mut dealt = vec![0; numbers.len()];
    for at in order {
        let Some(Reverse((sum, shard))) = heap.pop() else { break };
        dealt[at] = shard;
        heap.push(Reverse((sum.saturating_add(micros(seconds[at])), shard)));
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shard_has_more_than_one_case_more_than_another() {
        let numbers: Vec<u64> =
            (0..103).map(|n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let dealt = by_number(&numbers, 10);
        let counts: Vec<usize> =
            (0..10).map(|shard| dealt.iter().filter(|s| **s == shard).count()).collect();
        assert!(counts.iter().all(|n| [10, 11].contains(n)), "{counts:?}");
    }

    #[test]
    fn a_long_case_has_its_shard_to_itself() {
        let dealt = by_seconds(&[1.0, 9.0, 1.0, 2.0, 3.0], &[5, 4, 3, 2, 1], 2);
        assert_eq!(dealt.iter().filter(|shard| **shard == dealt[1]).count(), 1, "{dealt:?}");
        // What is no time takes part too.
        let odd = by_seconds(&[f64::NAN, -1.0, f64::INFINITY], &[1, 2, 3], 3);
        assert_eq!(odd.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{odd:?}");
    }
}
