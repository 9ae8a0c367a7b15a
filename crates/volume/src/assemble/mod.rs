//! Volumes from their members, given in any order and under any name.
//!
//! Labels say which members belong together. An assembled volume may carry a label itself, as a
//! member of another volume, so assembly continues until nothing new is found. Inner volumes are
//! assembled first, also if members are missing (`nesting`), and each volume once.
//!
//! Assembly writes nothing: see [`crate::mirror`].

pub(crate) mod lineage;
mod map;
mod mirror;
mod nesting;
mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use uuid::Uuid;

use crate::error::{Result, VolumeError};
use crate::member::{LabelledDevice, read_label};
use crate::mirror::Mirror;
use crate::ondisk::label::LayoutKind;
use crate::planted::Bug;
use steadfast_block::planted::BugSwitch;

type Device = Arc<dyn BlockDevice>;

/// How volumes are assembled.
#[derive(Debug, Clone, Default)]
pub struct AssembleOptions {
    /// Assembles without missing durable legs, although they may hold newer data.
    pub degraded: bool,
    /// After a split brain, or with copies that are not trusted: the member (its UUID) whose data
    /// is kept. The data of the others is discarded.
    pub keep: Option<Uuid>,
    /// Nothing is written, neither data nor labels.
    pub read_only: bool,
    /// Bytes of memory that the checksums of a mirror take; 64 MiB by default.
    pub checksum_memory: Option<usize>,
    /// For tests of the tests.
    pub planted: BugSwitch<Bug>,
}

/// A volume that was assembled.
#[derive(Clone)]
pub struct Volume {
    /// UUID.
    pub uuid: Uuid,
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: LayoutKind,
    /// The volume as a device.
    pub device: Device,
    /// The same, where it is a mirror.
    pub mirror: Option<Mirror>,
    /// Names of its members that are there, by their place.
    pub members: Vec<String>,
    /// UUID of the volume that it is a member of.
    pub member_of: Option<Uuid>,
}

/// Maximum nesting depth. Each level costs every read a call, and hostile labels could name
/// thousands.
pub const DEPTH_MAX: usize = 16;

/// What was found among devices.
#[derive(Clone, Default)]
pub struct AssemblyReport {
    /// Volumes, members before what they are members of.
    pub volumes: Vec<Volume>,
    /// What could not be assembled, and why.
    pub problems: Vec<(String, VolumeError)>,
    /// Devices without a label.
    pub blank: Vec<Device>,
    /// Volumes that were assembled, or refused.
    seen: Vec<Uuid>,
}

impl Volume {
    /// Closes it, if it is a mirror. What it is made of stays open: [`AssemblyReport::close`].
    ///
    /// # Errors
    /// As [`Mirror::close`].
    pub fn close(&self) -> Result<()> {
        self.mirror.as_ref().map_or(Ok(()), Mirror::close)
    }

    /// The assembly is complete: from now on reads are those of users.
    fn opened(&self) {
        if let Some(mirror) = &self.mirror {
            mirror.0.state.lock().assembling = false;
        }
    }
}

impl AssemblyReport {
    /// Closes all mirrors, outer ones first. The caller of the assembly calls this after the last
    /// user, also after errors.
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

    /// Volumes that are not a member of another one.
    pub fn outer(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.iter().filter(|v| v.member_of.is_none())
    }
}

/// Assembles all volumes that the devices are members of. The caller closes them
/// ([`AssemblyReport::close`]).
pub fn assemble(devices: &[Device], options: &AssembleOptions) -> AssemblyReport {
    let mut done = AssemblyReport::default();
    let mut groups: BTreeMap<Uuid, Vec<LabelledDevice>> = BTreeMap::new();
    for device in devices {
        if let Err(error) = sort_in(device, &mut groups, &mut done) {
            done.problems.push((device.info().name, error));
        }
    }
    while let Some(uuid) = nesting::innermost(&groups, options) {
        let Some(members) = groups.remove(&uuid) else { break };
        let name = members.first().map_or_else(String::new, |m| m.label.name.clone());
        match assemble_group(members, options) {
            Ok(mut volume) => {
                let device = Arc::clone(&volume.device);
                let around = match depth_of(&volume, &done) {
                    0..DEPTH_MAX => sort_in(&device, &mut groups, &mut done),
                    _ => refuse_deeper(&device, &volume.name),
                };
                volume.member_of = around.unwrap_or_else(|error| match error {
                    // The member that holds its start is missing. The read reports it.
                    VolumeError::Io(_) => None,
                    error => {
                        done.problems.push((volume.name.clone(), error));
                        None
                    }
                });
                done.volumes.push(volume);
            }
            Err(error) => done.problems.push((name, error)),
        }
        done.seen.push(uuid);
    }
    let there: Vec<Uuid> = done.volumes.iter().map(|v| v.uuid).collect();
    for volume in &mut done.volumes {
        volume.opened();
        // Of what could not be assembled nothing is a member.
        volume.member_of = volume.member_of.filter(|outer| there.contains(outer));
    }
    // Volumes are not blank devices.
    let volumes = &done.volumes;
    done.blank.retain(|d| !volumes.iter().any(|v| Arc::ptr_eq(&v.device, d)));
    done
}

/// How many volumes it is made of, one inside of the other.
fn depth_of(volume: &Volume, done: &AssemblyReport) -> usize {
    let inside = done.volumes.iter().filter(|v| v.member_of == Some(volume.uuid));
    1 + inside.map(|v| depth_of(v, done)).max().unwrap_or(0)
}

/// The innermost [`DEPTH_MAX`] are assembled, and no more.
fn refuse_deeper(device: &Device, name: &str) -> Result<Option<Uuid>> {
    match read_label(device)? {
        None => Ok(None),
        Some(_) => refuse!(
            "volume '{name}': {DEPTH_MAX} volumes are inside of each other, and it is a member of \
             another one: more are not assembled"
        ),
    }
}

/// Groups a device with those of the same volume. Returns that volume's UUID, if it is a member of
/// one.
fn sort_in(
    device: &Device,
    groups: &mut BTreeMap<Uuid, Vec<LabelledDevice>>,
    done: &mut AssemblyReport,
) -> Result<Option<Uuid>> {
    let Some(found) = read_label(device)? else {
        done.blank.push(Arc::clone(device));
        return Ok(None);
    };
    let outer = found.label.volume;
    if done.seen.contains(&outer) {
        let (slot, name) = (found.label.slot, &found.label.name);
        let what = format!(
            "is member {slot} of volume '{name}', which was assembled or refused before it: their \
             labels name each other"
        );
        return Err(VolumeError::Corrupt { device: found.name(), what });
    }
    groups.entry(outer).or_default().push(found);
    Ok(Some(outer))
}

/// Assembles one volume from members that carry its label.
///
/// # Errors
/// If a member exists twice, a required one is missing, or the newest data cannot be determined.
/// Nothing was written.
pub fn assemble_one(members: Vec<LabelledDevice>, options: &AssembleOptions) -> Result<Volume> {
    let volume = assemble_group(members, options)?;
    volume.opened();
    Ok(volume)
}

fn assemble_group(members: Vec<LabelledDevice>, options: &AssembleOptions) -> Result<Volume> {
    let Some(first) = members.first() else {
        refuse!("no members were given");
    };
    refuse_twins(&members)?;
    match first.label.kind {
        LayoutKind::Mirror => Ok(mirror::assemble(members, options)?.into_volume()),
        LayoutKind::Concat | LayoutKind::Stripe => rows::assemble(members),
    }
}

/// Two devices have the label of one member: one is a copy, and it is unknown which.
fn refuse_twins(members: &[LabelledDevice]) -> Result<()> {
    for (n, a) in members.iter().enumerate() {
        let same = |b: &&LabelledDevice| lineage::own_uuid(&b.label) == lineage::own_uuid(&a.label);
        if let Some(b) = members[n + 1..].iter().find(same) {
            refuse!(
                "{} and {} carry the label of the same member of volume '{}': one is a copy of \
                 the other; give only the one that counts",
                a.name(),
                b.name(),
                a.label.name
            );
        }
    }
    Ok(())
}
