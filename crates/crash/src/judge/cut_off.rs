//! What a truncation has cut off, and whether that is certain.

use super::UNIT;
use crate::account::{Action, Operation};

/// The truncation that has certainly happened to a file of this length, and from where on it cut:
/// the last before the call that first made it so long. File systems that have not written all of
/// an append may set an end inside it, at the edge of a block: of such an end nothing is known.
pub(super) fn cut_off(ops: &[&Operation], len: u64) -> Option<(usize, u64)> {
    if len.is_multiple_of(UNIT) {
        return None;
    }
    let (mut size, mut last) = (0, None);
    for (i, op) in ops.iter().enumerate() {
        let end = match op.action {
            Action::Resize { size: new } => {
                if new < size {
                    last = Some((i, new));
                }
                new
            }
            Action::Write { offset, len, .. } => size.max(offset + len),
            Action::Allocate { offset, len, keep_size: false } => size.max(offset + len),
            Action::Allocate { .. } | Action::Clear { .. } => size,
        };
        size = end;
        if size == len {
            return last.filter(|(_, from)| *from < len);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use steadfast_block::pattern;
    use steadfast_devices::filter::record::Moment;
    use steadfast_runtime::Nanos;

    use super::*;
    use crate::judge::judge;

    fn moment(tick: u64) -> Moment {
        Moment { tick, at: Nanos(tick) }
    }

    fn did(action: Action, start: u64, durable: bool) -> Operation {
        let end = moment(start + 1);
        Operation {
            action,
            started: moment(start),
            acknowledged: Some(end),
            durable: durable.then_some(end),
        }
    }

    #[test]
    fn what_a_truncation_cut_off_does_not_come_back() {
        let write = |offset, tag, start| did(Action::Write { offset, len: 1024, tag }, start, true);
        let resize = |size, start| did(Action::Resize { size }, start, false);
        let ops = [write(0, 1, 1), write(1024, 2, 3), resize(1536, 5), resize(5632, 7)];
        let data = [pattern::bytes(1, 0, 1024), pattern::bytes(2, 1024, 1024)].concat();
        let stale = |ops: &[Operation], held: &[u8]| judge(ops, 10, Some(held)).stale_bytes;
        let mut held = data.clone();
        held.resize(5632, 0);
        assert_eq!(stale(&ops, &held), 512);
        held[1536..2048].fill(0);
        assert_eq!(stale(&ops, &held), 0);
        // The end of before the truncation; and one that an append in parts may have set.
        assert_eq!(stale(&ops, &data), 0);
        let mut held = data;
        held.resize(4096, 0);
        assert_eq!(stale(&[ops[0], ops[1], ops[2], resize(4096, 7)], &held), 0);
    }
}
