//! The calls that a program made, as the file system saw them.

use std::fmt;

use serde::{Deserialize, Serialize};
use steadfast_block::pattern;
use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::{Digest, PackedBytes};
use steadfast_vfs::{Attr, Fallocate, Ino};

use super::faults::FaultError;
use crate::account::{Action, Operation};
use crate::tree::{Contents, shown};

/// What was asked of the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CallKind {
    /// A file was made.
    Create,
    /// A directory.
    Mkdir,
    /// A symbolic link.
    Symlink,
    /// A device node, FIFO or socket.
    Mknod,
    /// A further name: `other` is the new one.
    Link,
    /// A name was removed.
    Unlink,
    /// A directory was removed.
    Rmdir,
    /// A name was moved to `other`, replacing what was there.
    Rename,
    /// Two names changed places.
    Exchange,
    /// Bytes were written; `contents` are theirs.
    Write,
    /// The size was set to `offset`.
    Truncate,
    /// A range was allocated, punched out, zeroed or moved.
    Fallocate,
    /// Attributes were changed.
    #[strum(serialize = "set attributes of")]
    Attributes,
    /// The file was made durable; `contents` are the file's.
    Fsync,
    /// The file was made durable as far as its contents need it.
    Fdatasync,
    /// The names of a directory were made durable.
    #[strum(serialize = "fsync of directory")]
    FsyncDir,
    /// Everything was made durable: sync, or a transaction point.
    Sync,
}

impl CallKind {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it is there to make something durable.
    pub fn is_sync(self) -> bool {
        matches!(self, CallKind::Fsync | CallKind::Fdatasync | CallKind::FsyncDir | CallKind::Sync)
    }

    /// Whether it makes, moves or removes names.
    pub(crate) fn changes_names(self) -> bool {
        use CallKind::{Create, Exchange, Link, Mkdir, Mknod, Rename, Rmdir, Symlink, Unlink};
        matches!(self, Create | Mkdir | Symlink | Mknod | Link | Unlink | Rmdir | Rename | Exchange)
    }

    /// Whether it changes the bytes of a file.
    pub fn changes_contents(self) -> bool {
        matches!(self, CallKind::Write | CallKind::Truncate | CallKind::Fallocate)
    }
}

/// Whose call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Origin {
    /// The program's.
    #[default]
    Program,
    /// A further request of a call of the program's, which is in the list at this place.
    PartOf(usize),
    /// The kernel's, which writes back what was changed in a memory map or collected.
    Kernel,
}

/// What fallocate(2) did to a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RangeChange {
    /// Found places for it.
    Allocate,
    /// The same, also behind the end, which stays.
    AllocateKeepSize,
    /// Took its storage away.
    PunchHole,
    /// Made it zeros.
    Zero,
    /// The same; the end stays.
    ZeroKeepSize,
    /// Took it out.
    Collapse,
    /// Put it in.
    Insert,
}

impl From<Fallocate> for RangeChange {
    fn from(what: Fallocate) -> RangeChange {
        match what {
            Fallocate::Allocate { keep_size: false } => RangeChange::Allocate,
            Fallocate::Allocate { keep_size: true } => RangeChange::AllocateKeepSize,
            Fallocate::PunchHole => RangeChange::PunchHole,
            Fallocate::ZeroRange { keep_size: false } => RangeChange::Zero,
            Fallocate::ZeroRange { keep_size: true } => RangeChange::ZeroKeepSize,
            Fallocate::CollapseRange => RangeChange::Collapse,
            Fallocate::InsertRange => RangeChange::Insert,
        }
    }
}

/// What else it takes to make a call again, without the file system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CallDetail {
    /// Nothing, or it is not known.
    #[default]
    None,
    /// Of a file that was made: what it is like.
    Node {
        /// Permission bits.
        mode: u16,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Of a device node.
        rdev: u64,
        /// Of a symbolic link.
        target: Vec<u8>,
    },
    /// What was written.
    Bytes(PackedBytes),
    /// A range of the file, which begins at the call's `offset`.
    Range {
        /// What was done to it.
        what: RangeChange,
        /// Bytes.
        len: u64,
    },
    /// The attributes that were set.
    Attributes {
        /// Permission bits.
        mode: Option<u16>,
        /// Owner.
        uid: Option<u32>,
        /// Group.
        gid: Option<u32>,
    },
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// What was asked.
    pub kind: CallKind,
    /// Whose it is.
    pub origin: Origin,
    /// When it has returned with success, what it made durable is promised: a sync, or a write to a
    /// file opened with O_SYNC or O_DSYNC.
    pub promises: bool,
    /// The paths are not whole: a folder on the way was never seen under a name.
    pub unplaced: bool,
    /// When.
    pub started: Moment,
    /// When it returned; `None`: it had not by the end of the recording.
    pub returned: Option<Moment>,
    /// It returned an error.
    pub failed: bool,
    /// Somebody has asked for that error.
    pub injected: Option<FaultError>,
    /// The file that it was about, by its number and generation (`file_id`); 0 where there is none.
    pub ino: u64,
    /// The file that lost the name `other` to it.
    pub replaced: u64,
    /// The path, without a leading '/'.
    pub path: Vec<u8>,
    /// The other path of a rename or link.
    pub other: Vec<u8>,
    /// Where a write began; the new size of a truncation. Bytes.
    pub offset: u64,
    /// Of a write: what was written. Of an fsync: what the file held. Of a rename: what the file
    /// held that was moved.
    pub contents: Option<Contents>,
    /// Of a rename: what the file held that was replaced.
    pub lost: Option<Contents>,
    /// What else it said.
    pub detail: CallDetail,
}

/// The number of an inode and, above its 32 bits, the generation: files that have one number one
/// after the other are not one file.
pub(crate) fn file_id(attr: &Attr) -> u64 {
    u64::from(attr.generation) << 32 | attr.ino.0
}

/// The number of the inode of a number and generation.
pub(crate) fn number_of(file: u64) -> Ino {
    Ino(file & u64::from(u32::MAX))
}

impl Call {
    /// A call that succeeded, of which no more is known than this.
    pub fn plain(kind: CallKind, path: &str, started: Moment, returned: Option<Moment>) -> Call {
        Call {
            kind,
            origin: Origin::Program,
            promises: kind.is_sync(),
            unplaced: false,
            started,
            returned,
            failed: false,
            injected: None,
            ino: 0,
            replaced: 0,
            path: path.as_bytes().to_vec(),
            other: Vec::new(),
            offset: 0,
            contents: None,
            lost: None,
            detail: CallDetail::None,
        }
    }

    /// What was done to a file of this path; writes are of stamped data
    /// ([`steadfast_block::pattern`]).
    pub fn of(path: &str, op: &Operation) -> Call {
        let plain = |kind| Call::plain(kind, path, op.started, op.acknowledged);
        match op.action {
            Action::Write { offset, len, tag } => {
                let digest = Digest::of(&pattern::bytes(tag, offset, len as usize));
                let contents = Some(Contents { size: len, digest });
                Call { offset, contents, ..plain(CallKind::Write) }
            }
            Action::Resize { size } => Call { offset: size, ..plain(CallKind::Truncate) },
            Action::Clear { offset, .. } | Action::Allocate { offset, .. } => {
                Call { offset, ..plain(CallKind::Fallocate) }
            }
        }
    }

    /// Whether it was a sync of a file that was made to fail: what the file has not made durable by
    /// then, a later sync does not either.
    pub(crate) fn loses_data(&self) -> bool {
        self.injected.is_some() && matches!(self.kind, CallKind::Fsync | CallKind::Fdatasync)
    }

    /// Whether it may have had its effect after a tick.
    pub(super) fn may_end_after(&self, tick: u64) -> bool {
        !self.failed && self.returned.is_none_or(|returned| returned.tick > tick)
    }

    /// Whether it had returned with success before a tick.
    pub fn done_before(&self, tick: u64) -> bool {
        !self.failed && self.returned.is_some_and(|returned| returned.tick < tick)
    }
}

/// When each call had returned to the program, which is when its last part had; `None`: not within
/// the recording.
pub(crate) fn returns(calls: &[Call]) -> Vec<Option<Moment>> {
    let mut returns: Vec<Option<Moment>> = calls.iter().map(|call| call.returned).collect();
    for (place, call) in calls.iter().enumerate() {
        if let Origin::PartOf(first) = call.origin {
            let both = returns[first].zip(returns[place]);
            returns[first] = both.map(|(a, b)| if a.tick > b.tick { a } else { b });
        }
    }
    for (place, call) in calls.iter().enumerate() {
        if let Origin::PartOf(first) = call.origin {
            returns[place] = returns[first];
        }
    }
    returns
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { kind, offset, .. } = self;
        write!(f, "{}", kind.name())?;
        let path = match &self.path[..] {
            [] if self.unplaced => format!("inode {}", number_of(self.ino).0),
            [] if *kind == CallKind::FsyncDir => "/".into(),
            path if self.unplaced => format!(".../{}", shown(path)),
            path => shown(path),
        };
        match kind {
            CallKind::Sync => {}
            CallKind::Write => {
                let len = self.contents.map_or(0, |c| c.size);
                write!(f, " {path}: {len} bytes at {offset}")?;
            }
            CallKind::Truncate => write!(f, " {path} to {offset} bytes")?,
            CallKind::Rename => write!(f, " {path} to {}", shown(&self.other))?,
            CallKind::Exchange => write!(f, " {path} and {}", shown(&self.other))?,
            CallKind::Link => write!(f, " {path} as {}", shown(&self.other))?,
            _ => write!(f, " {path}")?,
        }
        if self.failed { f.write_str(" (failed)") } else { Ok(()) }
    }
}
