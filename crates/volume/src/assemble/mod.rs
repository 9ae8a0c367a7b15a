//! Volumes from their members, given in any order and under any name.
//!
//! Labels say what belongs together. A volume that is assembled may carry a label itself: it is a
//! member of another one then, so this goes on until nothing new is found.

pub mod lineage;
mod map;
mod mirror;
mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use uuid::Uuid;

use crate::error::{Result, VolumeError};
use crate::member::{Labelled, read_label};
use crate::mirror::Mirror;
use crate::ondisk::label::Kind;
use crate::planted::Planted;

type Device = Arc<dyn BlockDevice>;

/// How volumes are assembled.
#[derive(Debug, Clone, Default)]
pub struct AssembleOptions {
    /// Go on without durable legs that are missing, though they may hold newer data.
    pub degraded: bool,
    /// Of halves that were written apart, or of copies that are not believed, this member (its
    /// UUID) is the one that counts; what the others hold is given up.
    pub keep: Option<Uuid>,
    /// Nothing is written, neither data nor labels.
    pub read_only: bool,
    /// For tests of the tests.
    pub planted: Planted,
}

/// A volume that was assembled.
#[derive(Clone)]
pub struct Volume {
    /// UUID.
    pub uuid: Uuid,
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The volume as a device.
    pub device: Device,
    /// The same, where it is a mirror.
    pub mirror: Option<Mirror>,
    /// Names of its members that are there, by their place.
    pub members: Vec<String>,
    /// UUID of the volume that it is a member of.
    pub member_of: Option<Uuid>,
}

/// What was found among devices.
#[derive(Clone, Default)]
pub struct Assembled {
    /// Volumes, members before what they are members of.
    pub volumes: Vec<Volume>,
    /// What could not be assembled, and why.
    pub problems: Vec<(String, VolumeError)>,
    /// Devices without a label.
    pub blank: Vec<Device>,
}

impl Assembled {
    /// Closes all mirrors, outer ones first.
    ///
    /// # Errors
    /// The first one; all are closed even so.
    pub fn close(&self) -> Result<()> {
        let mut outcome = Ok(());
        for mirror in self.volumes.iter().rev().filter_map(|v| v.mirror.as_ref()) {
            outcome = outcome.and(mirror.close());
        }
        outcome
    }

    /// Volumes that are no member of another.
    pub fn outer(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.iter().filter(|v| v.member_of.is_none())
    }
}

/// Assembles all volumes that the devices are members of.
pub fn assemble(devices: &[Device], options: &AssembleOptions) -> Assembled {
    let mut done = Assembled::default();
    let mut pending: Vec<Device> = devices.to_vec();
    let mut groups: BTreeMap<Uuid, Vec<Labelled>> = BTreeMap::new();
    loop {
        for device in std::mem::take(&mut pending) {
            match read_label(&device) {
                Ok(Some(found)) => groups.entry(found.label.volume).or_default().push(found),
                Ok(None) => done.blank.push(device),
                Err(error) => done.problems.push((device.info().name, error)),
            }
        }
        // A group whose members may be volumes that are still to come waits for them.
        let Some(uuid) = next_group(&groups) else { break };
        let Some(members) = groups.remove(&uuid) else { break };
        let name = members.first().map_or_else(String::new, |m| m.label.name.clone());
        match assemble_one(members, options) {
            Ok(volume) => {
                // Its own label, if it has one, is found like any other's.
                mark_members(&mut done.volumes, &volume);
                pending.push(Arc::clone(&volume.device));
                done.volumes.push(volume);
            }
            Err(error) => done.problems.push((name, error)),
        }
    }
    // Volumes are not blank devices.
    let volumes = &done.volumes;
    done.blank.retain(|d| !volumes.iter().any(|v| Arc::ptr_eq(&v.device, d)));
    done
}

/// Complete groups first: what is missing from another may be one of them.
fn next_group(groups: &BTreeMap<Uuid, Vec<Labelled>>) -> Option<Uuid> {
    let complete = groups.iter().find(|(_, members)| {
        let most = members.iter().map(|m| m.label.members.len()).max().unwrap_or(0);
        members.len() >= most
    });
    complete.or_else(|| groups.iter().next()).map(|(uuid, _)| *uuid)
}

fn mark_members(volumes: &mut [Volume], outer: &Volume) {
    for volume in volumes.iter_mut() {
        if outer.members.contains(&volume.device.info().name) {
            volume.member_of = Some(outer.uuid);
        }
    }
}

/// Assembles one volume from members that carry its label.
///
/// # Errors
/// If a member is there twice, one is missing that is needed, or nobody can say which of them holds
/// the newest data. Nothing was written then.
pub fn assemble_one(members: Vec<Labelled>, options: &AssembleOptions) -> Result<Volume> {
    let Some(first) = members.first() else {
        return Err(VolumeError::refused("no members were given"));
    };
    refuse_twins(&members)?;
    match first.label.kind {
        Kind::Mirror => mirror::assemble(members, options),
        Kind::Concat | Kind::Stripe => rows::assemble(members),
    }
}

/// Two devices with the label of one member: one is a copy, and which nobody knows.
fn refuse_twins(members: &[Labelled]) -> Result<()> {
    for (n, a) in members.iter().enumerate() {
        let same = |b: &&Labelled| lineage::own_uuid(&b.label) == lineage::own_uuid(&a.label);
        if let Some(b) = members[n + 1..].iter().find(same) {
            return Err(VolumeError::refused(format!(
                "{} and {} carry the label of the same member of volume '{}': one is a copy of \
                 the other; give only the one that counts",
                a.name(),
                b.name(),
                a.label.name
            )));
        }
    }
    Ok(())
}
