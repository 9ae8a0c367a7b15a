//! Future events of a model, with their times.

use std::collections::BTreeMap;

/// Things to come, earliest first; those due at the same time in the order they were entered.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    items: BTreeMap<(u64, u64), T>,
    entered: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { items: BTreeMap::new(), entered: 0 }
    }
}

impl<T> Agenda<T> {
    pub(super) fn enter(&mut self, at_ns: u64, item: T) {
        self.items.insert((at_ns, self.entered), item);
        self.entered += 1;
    }

    /// When the first item is due.
    pub(super) fn next(&self) -> Option<u64> {
        self.items.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the first item that is due by `until_ns`.
    pub(super) fn take_due(&mut self, until_ns: u64) -> Option<(u64, T)> {
        if self.next()? > until_ns {
            return None;
        }
        self.items.pop_first().map(|((at, _), item)| (at, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_time_then_by_entry() {
        let mut a = Agenda::default();
        [(5, 'c'), (1, 'a'), (1, 'b'), (9, 'd')].into_iter().for_each(|(t, x)| a.enter(t, x));
        let due: Vec<_> = std::iter::from_fn(|| a.take_due(5)).collect();
        assert_eq!(due, [(1, 'a'), (1, 'b'), (5, 'c')]);
        assert_eq!(a.next(), Some(9));
    }
}
