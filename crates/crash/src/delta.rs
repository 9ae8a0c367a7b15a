//! Delta debugging: the fewest items that still fail.
//!
//! Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002), without its
//! step to a single part: parts are taken out, in ever smaller ones, as long as what is left fails.

/// The items that cannot be left out one by one without losing the failure; more of them if
/// `tries` run out. `fails` is asked of parts of `items`, in their order; of all of them it is
/// true.
pub fn minimise<T: Clone>(
    items: &[T],
    tries: &mut u32,
    mut fails: impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    let mut left = items.to_vec();
    let mut parts = 2;
    while !left.is_empty() {
        let size = left.len().div_ceil(parts).max(1);
        let mut at = 0;
        let mut smaller = false;
        while at < left.len() {
            if *tries == 0 {
                return left;
            }
            *tries -= 1;
            let mut rest = left.clone();
            rest.drain(at..(at + size).min(left.len()));
            if fails(&rest) {
                left = rest;
                smaller = true;
            } else {
                at += size;
            }
        }
        if size == 1 && !smaller {
            break;
        }
        parts = if size == 1 { left.len().max(1) } else { parts * 2 };
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_left_in_its_order() {
        let items: Vec<u32> = (0..100).collect();
        let mut tries = 1000;
        let needed = |part: &[u32]| [7, 42, 99].iter().all(|n| part.contains(n));
        assert_eq!(minimise(&items, &mut tries, needed), [7, 42, 99]);
        assert!(tries > 900, "{tries} left");
        assert!(minimise(&items, &mut 1000, |_| true).is_empty());
    }

    #[test]
    fn it_ends_when_the_tries_do() {
        let items: Vec<u32> = (0..100).collect();
        let mut tries = 3;
        let left = minimise(&items, &mut tries, |part| part.contains(&99));
        assert_eq!((tries, left.last()), (0, Some(&99)));
    }
}
