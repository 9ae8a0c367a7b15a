//! The order of assembly of nested volumes.
//!
//! A volume with all members present can be assembled. If members are missing, one of them may be a
//! volume that is assembled later. So the present members are read for the label that the volume
//! carries as a member of an outer one.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::lineage::own_uuid;
use super::{AssembleOptions, Volume, assemble_group};
use crate::member::{LabelledDevice, read_label};
use crate::ondisk::label::MemberState;

type Groups = BTreeMap<Uuid, Vec<LabelledDevice>>;

/// The group whose volume waits for no other of these.
pub(super) fn innermost(groups: &Groups, options: &AssembleOptions) -> Option<Uuid> {
    if let Some((uuid, _)) = groups.iter().find(|(_, members)| is_complete(members)) {
        return Some(*uuid);
    }
    if groups.len() < 2 {
        return groups.keys().next().copied();
    }
    let outer = outer_of(groups, options);
    let waits = |uuid: &Uuid| outer.values().any(|outer| outer == uuid);
    // A cycle exists only with forged labels.
    groups.keys().find(|uuid| !waits(uuid)).or_else(|| groups.keys().next()).copied()
}

/// Whether all members of the newest label are present. A former member that could not be wiped
/// when it was replaced does not count.
fn is_complete(members: &[LabelledDevice]) -> bool {
    let newest = members.iter().map(|m| &m.label).max_by_key(|label| label.generation);
    let named = newest.into_iter().flat_map(|label| &label.members);
    let is_there = |uuid: Uuid| members.iter().any(|m| own_uuid(&m.label) == uuid);
    named.filter(|m| m.state != MemberState::Empty).all(|m| is_there(m.uuid))
}

/// For each group: the group of the outer volume, as far as known. The volume counts as a member of
/// the outer one, which is then checked again.
fn outer_of(groups: &Groups, options: &AssembleOptions) -> BTreeMap<Uuid, Uuid> {
    let look = AssembleOptions { degraded: true, read_only: true, ..options.clone() };
    let mut seen = groups.clone();
    let mut outer: BTreeMap<Uuid, Uuid> = BTreeMap::new();
    let mut volumes: Vec<Volume> = Vec::new();
    let mut to_look: BTreeSet<Uuid> = seen.keys().copied().collect();
    while let Some(uuid) = to_look.pop_first() {
        if outer.contains_key(&uuid) {
            continue;
        }
        let members = seen.get(&uuid).cloned().unwrap_or_default();
        let Ok(volume) = assemble_group(members, &look) else { continue };
        if let Ok(Some(found)) = read_label(&volume.device) {
            let around = found.label.volume;
            outer.insert(uuid, around);
            seen.entry(around).or_default().push(found);
            to_look.insert(around);
            // It may be read through the outer one.
            volumes.push(volume);
        }
    }
    drop(volumes);
    outer
}
