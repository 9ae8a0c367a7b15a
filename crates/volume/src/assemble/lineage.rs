//! Which of several labels is the newest, and whose data may be believed.
//!
//! A volume's data has an identity, which changes whenever the volume goes on without a leg that
//! takes promises; the label remembers the earlier ones, and the generation at which each was given
//! up. So of two labels either one's identity is among the other's ancestors, and then that one is
//! older, or both went on by themselves. Whoever chose between those would destroy what was written
//! to the other, so a person must.
//!
//! Labels are written to one leg after the other, so a cut leaves some with the generation before.
//! A label says which generation was known to be on all legs (`base`): a leg that has this one or a
//! later one is the leg itself, and an older one is an old copy of it.

use uuid::Uuid;

use crate::ondisk::label::{Ancestor, Label, Left, MemberState};

/// How the data that a label tells of is related to that of another label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It is the same, or the other's data has come from it.
    Ancestor,
    /// It was written to by itself, or the other comes from it.
    Apart,
    /// It is so old that the other label has no room for its name any more: it may be either.
    Forgotten,
}

/// How `a` is related to `b`.
pub(crate) fn relation(a: &Label, b: &Label) -> Relation {
    if a.data == b.data {
        return if a.generation <= b.generation { Relation::Ancestor } else { Relation::Apart };
    }
    match b.history.iter().find(|ancestor| ancestor.data == a.data) {
        Some(ancestor) if was_left(a, ancestor) => Relation::Ancestor,
        // It has the name that was given up, and went on under it.
        Some(_) => Relation::Apart,
        None if a.generation <= b.forgotten => Relation::Forgotten,
        None => Relation::Apart,
    }
}

/// Whether a label is from before its identity was given up. A generation that was never known to
/// be on all legs was an interrupted change: nothing was done under it.
fn was_left(label: &Label, ancestor: &Ancestor) -> bool {
    label.data == ancestor.data && label.base <= ancestor.generation
}

/// The label that all others precede: its place.
pub fn newest(labels: &[&Label]) -> Option<usize> {
    let precede =
        |n: &usize| labels.iter().all(|other| relation(other, labels[*n]) == Relation::Ancestor);
    (0..labels.len()).filter(precede).max_by_key(|n| labels[*n].generation)
}

/// Where there is no newest label, but one of which nothing is known to be apart: its place, and
/// those of which nothing is known.
pub fn unknown(labels: &[&Label]) -> Option<(usize, Vec<usize>)> {
    let related = |n: usize| labels.iter().map(move |other| relation(other, labels[n]));
    let candidates =
        (0..labels.len()).filter(|n| related(*n).all(|relation| relation != Relation::Apart));
    let newest = candidates.max_by_key(|n| labels[*n].generation)?;
    let forgotten = related(newest).enumerate().filter(|(_, r)| *r == Relation::Forgotten);
    Some((newest, forgotten.map(|(n, _)| n).collect()))
}

/// Whether what a leg holds is what the newest label says of it: it has the newest generation, or
/// one that an interrupted change left on it.
pub(crate) fn is_current(label: &Label, newest: &Label) -> bool {
    let own = label.members.get(label.slot).map(|m| m.state);
    own == Some(MemberState::Active)
        && (newest.base..=newest.generation).contains(&label.generation)
        && relation(label, newest) == Relation::Ancestor
}

/// Whether a leg that was out of use is as it left, and was not used elsewhere, nor is it an old
/// copy of itself. `data` and `history` are those of the volume now.
pub(crate) fn is_as_it_left(label: &Label, left: Left, data: Uuid, history: &[Ancestor]) -> bool {
    let remembered = label.data == data || history.iter().any(|ancestor| was_left(label, ancestor));
    remembered && label.generation >= left.first && label.base <= left.last
}

/// The member's place in the newest label's table, if it is there.
pub(crate) fn place_in(label: &Label, newest: &Label) -> Option<usize> {
    let uuid = own_uuid(label);
    newest.members.iter().position(|m| m.state != MemberState::Empty && m.uuid == uuid)
}

/// The UUID of the member that carries a label.
pub(crate) fn own_uuid(label: &Label) -> Uuid {
    // OK to index: a valid label's place is in its table.
    label.members[label.slot].uuid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::label::{Kind, Member};

    fn uuid(n: u8) -> Uuid {
        Uuid::from_bytes([n; 16])
    }

    /// With ancestors as pairs of identity and last generation.
    fn label(generation: u64, data: u8, history: &[(u8, u64)]) -> Label {
        let ancestor =
            |(d, generation): &(u8, u64)| Ancestor { generation: *generation, data: uuid(*d) };
        Label {
            volume: Uuid::nil(),
            name: "m".into(),
            kind: Kind::Mirror,
            slot: 0,
            generation,
            base: generation.saturating_sub(1),
            data: uuid(data),
            incarnation: Uuid::nil(),
            closed: false,
            size: 4096,
            region_bytes: 4096,
            interlace: 0,
            data_start: 65536,
            device_bytes: 1 << 20,
            map_blocks: 1,
            policies: [0; 4],
            checksums: false,
            history: history.iter().map(ancestor).collect(),
            forgotten: 0,
            members: vec![Member { state: MemberState::Active, ..Member::empty() }],
        }
    }

    #[test]
    fn a_descendant_is_newer_whatever_the_generations() {
        let (old, new) = (label(9, 1, &[]), label(5, 2, &[(1, 9)]));
        assert_eq!(newest(&[&old, &new]), Some(1));
        assert_eq!(newest(&[&label(3, 1, &[]), &label(4, 1, &[])]), Some(1));
    }

    #[test]
    fn two_that_went_on_apart_have_no_newest() {
        let (a, b) = (label(9, 2, &[(1, 7)]), label(8, 3, &[(1, 7)]));
        assert_eq!(newest(&[&a, &b]), None);
        assert_eq!(newest(&[&a, &b, &label(1, 1, &[])]), None);
        assert_eq!(unknown(&[&a, &b]), None);
    }

    /// An old copy went on, from a generation that the other had long left behind.
    #[test]
    fn who_kept_an_identity_after_another_gave_it_up_is_apart() {
        let from_an_old_copy = label(7, 2, &[(1, 5)]);
        assert_eq!(relation(&label(9, 1, &[]), &from_an_old_copy), Relation::Apart);
        assert_eq!(newest(&[&label(9, 1, &[]), &from_an_old_copy]), None);
        // The change to generation 6 was interrupted: nothing was done under it.
        assert_eq!(relation(&label(6, 1, &[]), &from_an_old_copy), Relation::Ancestor);
    }

    #[test]
    fn only_interrupted_changes_may_be_missing() {
        let mut now = label(9, 2, &[(1, 8)]);
        assert!(is_current(&label(9, 2, &[(1, 8)]), &now));
        assert!(is_current(&label(8, 1, &[]), &now));
        assert!(!is_current(&label(7, 1, &[]), &now), "an old copy");
        assert!(!is_current(&label(8, 5, &[]), &now), "another line");
        // Several changes one after the other were interrupted.
        now.base = 6;
        assert!(is_current(&label(6, 1, &[]), &now) && !is_current(&label(5, 1, &[]), &now));
        let mut spare = label(9, 2, &[]);
        spare.members[0].state = MemberState::Spare;
        assert!(!is_current(&spare, &now), "it says itself that it holds nothing");
    }

    #[test]
    fn a_leg_that_comes_back_is_known_by_the_generation_at_which_it_left() {
        let now = label(30, 4, &[(3, 29), (2, 20), (1, 10)]);
        let left = Left { first: 19, last: 20 };
        let back = |generation, data| {
            is_as_it_left(&label(generation, data, &[]), left, now.data, &now.history)
        };
        assert!(back(20, 2) && back(19, 2));
        assert!(!back(18, 2) && !back(10, 1), "old copies");
        assert!(!back(22, 2) && !back(20, 7), "used elsewhere");
    }

    #[test]
    fn what_is_too_old_to_be_remembered_is_said_to_be() {
        let mut now = label(90, 9, &[(8, 80)]);
        now.forgotten = 70;
        let (old, split) = (label(60, 1, &[]), label(75, 2, &[]));
        assert_eq!(relation(&old, &now), Relation::Forgotten);
        assert_eq!(relation(&split, &now), Relation::Apart);
        assert_eq!(newest(&[&old, &now]), None);
        assert_eq!(unknown(&[&old, &now]), Some((1, vec![0])));
        assert_eq!(unknown(&[&old, &split, &now]), None);
    }
}
