//! Which of several labels is the newest, and whose data may be believed.
//!
//! A volume's data has an identity, which changes whenever the volume goes on without a leg that
//! takes promises; the label remembers the earlier ones. So of two labels either one's identity is
//! among the other's ancestors, and then that one is older, or both went on by themselves. Whoever
//! chose between those would destroy what was written to the other, so a person must.

use uuid::Uuid;

use crate::ondisk::label::{Label, MemberState};

/// Whether `a` tells of the same data as `b`, or of data that `b`'s has come from.
pub fn precedes(a: &Label, b: &Label) -> bool {
    if a.data == b.data {
        return a.generation <= b.generation;
    }
    b.history.iter().any(|ancestor| ancestor.data == a.data)
}

/// The label that all others precede: its place. `None`: they were written apart.
pub fn newest(labels: &[&Label]) -> Option<usize> {
    let candidates =
        (0..labels.len()).filter(|n| labels.iter().all(|other| precedes(other, labels[*n])));
    candidates.max_by_key(|n| labels[*n].generation)
}

/// Whether what a member holds is what the newest label says of it. Labels are written one change
/// after the other, so a member in use is at most the change behind that a cut interrupted; an
/// older one is an old copy of the member.
pub fn is_current(label: &Label, newest: &Label) -> bool {
    let behind = newest.generation.checked_sub(label.generation);
    behind.is_some_and(|n| n <= 1) && precedes(label, newest)
}

/// The member's place in the newest label's table, if it is there.
pub fn place_in(label: &Label, newest: &Label) -> Option<usize> {
    let uuid = own_uuid(label);
    newest.members.iter().position(|m| m.state != MemberState::Empty && m.uuid == uuid)
}

/// The UUID of the member that carries a label.
pub fn own_uuid(label: &Label) -> Uuid {
    // OK to index: a valid label's place is in its table.
    label.members[label.slot].uuid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::label::{Ancestor, Kind, Member};

    fn label(generation: u64, data: u8, history: &[u8]) -> Label {
        let ancestor = |d: &u8| Ancestor { generation: 0, data: Uuid::from_bytes([*d; 16]) };
        Label {
            volume: Uuid::nil(),
            name: "m".into(),
            kind: Kind::Mirror,
            slot: 0,
            generation,
            data: Uuid::from_bytes([data; 16]),
            incarnation: Uuid::nil(),
            closed: false,
            size: 4096,
            region_bytes: 4096,
            interlace: 0,
            data_start: 65536,
            device_bytes: 1 << 20,
            map_blocks: 1,
            policies: [0; 4],
            history: history.iter().map(ancestor).collect(),
            members: vec![Member { state: MemberState::Active, ..Member::empty() }],
        }
    }

    #[test]
    fn a_descendant_is_newer_whatever_the_generations() {
        let (old, new) = (label(9, 1, &[]), label(5, 2, &[1]));
        assert_eq!(newest(&[&old, &new]), Some(1));
        assert_eq!(newest(&[&label(3, 1, &[]), &label(4, 1, &[])]), Some(1));
    }

    #[test]
    fn two_that_went_on_apart_have_no_newest() {
        let (a, b) = (label(9, 2, &[1]), label(8, 3, &[1]));
        assert_eq!(newest(&[&a, &b]), None);
        assert_eq!(newest(&[&a, &b, &label(1, 1, &[])]), None);
    }

    #[test]
    fn only_an_interrupted_change_may_be_missing() {
        let now = label(9, 2, &[1]);
        assert!(is_current(&label(9, 2, &[1]), &now));
        assert!(is_current(&label(8, 1, &[]), &now));
        assert!(!is_current(&label(7, 1, &[]), &now), "an old copy");
        assert!(!is_current(&label(8, 5, &[]), &now), "another line");
    }
}
