//! What a host has, as far as the volume manager's commands print it.

use crate::command::{ReadOption, WriteOption};

/// Bytes of a block, the unit of sizes.
pub const BLOCK: u64 = 512;

/// Everything, each kind in its output order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Slices and RAM disks.
    pub devices: Vec<Device>,
    /// Concats and stripes.
    pub concats: Vec<Concat>,
    /// Mirrors.
    pub mirrors: Vec<SvmMirror>,
    /// Where labels and region maps lie.
    pub replicas: Vec<Replica>,
}

/// A slice, or a RAM disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// It is a RAM disk, of this name.
    pub ram_disk: Option<String>,
    /// What distinguishes it from others under any name; `None` if nothing does.
    pub id: Option<String>,
}

/// A place on a device, or on a volume that is part of another one, where the state is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replica {
    /// Name of the device or volume.
    pub on: String,
    /// The first block.
    pub first_block: u64,
    /// Blocks.
    pub blocks: u64,
    /// It is trusted, and written to.
    pub active: bool,
}

/// A concat, a stripe, or one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Concat {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Its parts, one after the other.
    pub rows: Vec<Row>,
    /// Something that it is made of is not there.
    pub unavailable: bool,
}

/// A part of a concat: one component, or several in turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Names of slices or volumes.
    pub components: Vec<String>,
    /// Bytes of each component in turn.
    pub interlace: u64,
}

/// A mirror.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SvmMirror {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Submirrors, by their place.
    pub submirrors: Vec<Submirror>,
    /// How it reads.
    pub read: ReadOption,
    /// How it writes.
    pub write: WriteOption,
    /// When it is resynced.
    pub pass: u8,
    /// A resync runs, and so many percent are done.
    pub resync_percent: Option<u8>,
    /// Names of its hot spares.
    pub spares: Vec<String>,
}

/// A submirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submirror {
    /// Its place.
    pub slot: usize,
    /// Name of the concat, stripe or slice.
    pub name: String,
    /// How it does.
    pub state: SubmirrorState,
}

/// How a submirror does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmirrorState {
    /// It holds everything.
    Okay,
    /// It is being given what it lacks.
    Resyncing,
    /// It lacks something, and no resync runs.
    ResyncPending,
    /// It failed, and another one has what it had.
    Erred,
    /// It failed, and no other one has what it has: it is still used.
    LastErred,
    /// Taken out by a person.
    Offline,
    /// It is not there.
    Unavailable,
}

impl SubmirrorState {
    /// In the words of `metastat`.
    pub(crate) fn of_submirror(self) -> &'static str {
        match self {
            SubmirrorState::Okay => "Okay",
            SubmirrorState::Resyncing => "Resyncing",
            SubmirrorState::Unavailable => "Unavailable",
            _ => "Needs maintenance",
        }
    }

    /// The same of what the submirror is made of.
    pub fn of_component(self) -> &'static str {
        match self {
            SubmirrorState::Erred => "Maintenance",
            SubmirrorState::LastErred => "Last Erred",
            SubmirrorState::Unavailable => "-",
            SubmirrorState::Resyncing => "Resyncing",
            _ => "Okay",
        }
    }
}

impl State {
    /// The device of this name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|d| d.name == name)
    }

    /// The concat or stripe of this name.
    pub fn concat(&self, name: &str) -> Option<&Concat> {
        self.concats.iter().find(|c| c.name == name)
    }

    /// The mirror of this name.
    pub fn mirror(&self, name: &str) -> Option<&SvmMirror> {
        self.mirrors.iter().find(|m| m.name == name)
    }

    /// Whether there is a volume of this name.
    pub fn has_volume(&self, name: &str) -> bool {
        self.mirror(name).is_some() || self.concat(name).is_some()
    }

    /// The volume that this one, or this slice, is part of.
    pub fn parent(&self, name: &str) -> Option<&str> {
        let has = |c: &&Concat| c.rows.iter().any(|r| r.components.iter().any(|c| c == name));
        let in_concat = self.concats.iter().find(has).map(|c| c.name.as_str());
        let is_leg = |m: &&SvmMirror| m.submirrors.iter().any(|s| s.name == name);
        in_concat.or_else(|| self.mirrors.iter().find(is_leg).map(|m| m.name.as_str()))
    }

    /// The submirror of a mirror that is, or is made of, what has this name.
    pub fn submirror_over<'s>(
        &self,
        mirror: &'s SvmMirror,
        component: &str,
    ) -> Option<&'s Submirror> {
        let mut name = component;
        // A component is part of one volume, so this ends; the bound is for a state that lies.
        for _ in 0..=self.concats.len() {
            if let Some(found) = mirror.submirrors.iter().find(|s| s.name == name) {
                return Some(found);
            }
            name = self.parent(name)?;
        }
        None
    }

    /// What a volume is made of; `None`: there is no such volume.
    pub fn parts(&self, name: &str) -> Option<Vec<&str>> {
        if let Some(mirror) = self.mirror(name) {
            return Some(mirror.submirrors.iter().map(|s| s.name.as_str()).collect());
        }
        let components = self.concat(name)?.rows.iter().flat_map(|r| &r.components);
        Some(components.map(String::as_str).collect())
    }

    /// The slices under a volume, from the left to the right.
    pub fn slices<'s>(&'s self, name: &'s str) -> Vec<&'s str> {
        let (mut found, mut open) = (Vec::new(), vec![(name, 0_usize)]);
        while let Some((name, depth)) = open.pop() {
            match self.parts(name) {
                _ if depth > self.concats.len() + self.mirrors.len() => {}
                Some(parts) => open.extend(parts.into_iter().rev().map(|part| (part, depth + 1))),
                None => found.push(name),
            }
        }
        found
    }
}
