//! Which of several labels is the newest, and which data is trusted (the problem of DRBD's data
//! generation identifiers).
//!
//! A volume's data has an identity, which changes whenever the volume continues without a durable
//! leg. The label stores the earlier identities, each with the generation at which it ended. So of
//! two labels one has an identity among the other's ancestors, and is older; or both continued
//! separately (split brain). Choosing one of the two would destroy data of the other, so a person
//! must choose.
//!
//! Labels are written to one leg after the other, so after a power cut some have the previous
//! generation. A label contains the generation that is known to be on all legs (`base`): a leg with
//! this generation or a later one is the leg itself, and an older one is an old copy of it.

use uuid::Uuid;

use crate::ondisk::label::{Ancestor, DepartureRange, Label, MemberState};

/// How the data of one label is related to the data of another label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It is the same, or an ancestor of the other's data.
    Ancestor,
    /// It was written separately, or the other is its ancestor.
    Apart,
    /// It is older than the ancestors that the other label stores: it may be either.
    Forgotten,
}

/// How `a` is related to `b`.
pub(crate) fn relation(a: &Label, b: &Label) -> Relation {
    if a.data == b.data {
        return if a.generation <= b.generation { Relation::Ancestor } else { Relation::Apart };
    }
    match b.history.iter().find(|ancestor| ancestor.data == a.data) {
        Some(ancestor) if was_left(a, ancestor) => Relation::Ancestor,
        // It has an identity that ended, and continued under it.
        Some(_) => Relation::Apart,
        None if a.generation <= b.forgotten => Relation::Forgotten,
        None => Relation::Apart,
    }
}

/// Whether a label is from before the end of its identity. A generation that was never known to be
/// on all legs was an interrupted change: nothing was done under it.
fn was_left(label: &Label, ancestor: &Ancestor) -> bool {
    label.data == ancestor.data && label.base <= ancestor.generation
}

/// The place of the label of which all others are ancestors.
pub fn newest(labels: &[&Label]) -> Option<usize> {
    let precede =
        |n: &usize| labels.iter().all(|other| relation(other, labels[*n]) == Relation::Ancestor);
    (0..labels.len()).filter(precede).max_by_key(|n| labels[*n].generation)
}

/// If there is no newest label, but one that is apart from none as far as known: its place, and the
/// places of those with an unknown relation.
pub fn unknown(labels: &[&Label]) -> Option<(usize, Vec<usize>)> {
    let related = |n: usize| labels.iter().map(move |other| relation(other, labels[n]));
    let candidates =
        (0..labels.len()).filter(|n| related(*n).all(|relation| relation != Relation::Apart));
    let newest = candidates.max_by_key(|n| labels[*n].generation)?;
    let forgotten = related(newest).enumerate().filter(|(_, r)| *r == Relation::Forgotten);
    Some((newest, forgotten.map(|(n, _)| n).collect()))
}

/// Whether a leg's data is as the newest label says: the leg has the newest generation, or one that
/// an interrupted change left on it.
pub(crate) fn is_current(label: &Label, newest: &Label) -> bool {
    let own = label.members.get(label.slot).map(|m| m.state);
    own == Some(MemberState::Active)
        && (newest.base..=newest.generation).contains(&label.generation)
        && relation(label, newest) == Relation::Ancestor
}

/// Whether a leg that was out of use is as it left: it was not used without the others, and is no
/// old copy.
/// `data` and `history` are the volume's present ones.
pub(crate) fn is_as_it_left(
    label: &Label,
    left: DepartureRange,
    data: Uuid,
    history: &[Ancestor],
) -> bool {
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
    use crate::ondisk::label::{LayoutKind, Member};

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
            kind: LayoutKind::Mirror,
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
            members: vec![Member { state: MemberState::Active, ..Member::default() }],
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
        let left = DepartureRange { first: 19, last: 20 };
        let back = |generation, data| {
            is_as_it_left(&label(generation, data, &[]), left, now.data, &now.history)
        };
        assert!(back(20, 2) && back(19, 2));
        assert!(!back(18, 2) && !back(10, 1), "old copies");
        assert!(!back(22, 2) && !back(20, 7), "used in another mirror");
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
