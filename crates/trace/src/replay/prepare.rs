//! Makes the files that were there before the first call.

use std::collections::HashMap;
use std::time::Duration;

use steadfast_vfs::{FileSystem, FsError, Ino, NewNode, OpenFlags};

use super::places::FilePlaces;
use super::{ReplayObserver, TraceSource, content};
use crate::error::{Result, TraceError};
use crate::format::{FileKind, FileState, ROOT, TraceEnd, TraceEntry, name_bytes};

/// Bytes of one write while files are made.
const PIECE: u64 = 1 << 20;
/// Folders and files that are there before, at most.
const FILES_MAX: usize = 10_000_000;

/// What a replay knows before it begins.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    /// Of each file that was there, its inode here.
    pub(super) files: HashMap<u64, Ino>,
    pub(super) places: FilePlaces,
    /// The trace's last line.
    pub end: TraceEnd,
    /// What the program did after its last call.
    pub(super) tail: Duration,
    /// How many files and folders were made, and bytes of them.
    pub made: (u64, u64),
}

/// Reads the whole trace, and makes the files of its beginning on an empty file system: durable
/// when this returns.
///
/// # Errors
/// The trace is damaged, or they cannot be made: no space, above all.
pub fn prepare(
    trace: &dyn TraceSource,
    fs: &dyn FileSystem,
    observer: &dyn ReplayObserver,
) -> Result<ReplayPlan> {
    let mut reader = trace.read()?;
    let (mut states, mut calls, mut last) = (Vec::new(), 0, 0);
    while let Some(entry) = reader.next_entry()? {
        match entry {
            TraceEntry::File(state) if states.len() < FILES_MAX => states.push(state),
            TraceEntry::File(_) => {
                return Err(TraceError::Prepare(format!("there are more than {FILES_MAX}")));
            }
            TraceEntry::Call(call) => (calls, last) = (calls + 1, call.end.max(last)),
            TraceEntry::Thread(_) | TraceEntry::End(_) => {}
        }
    }
    let cut_off = TraceEnd { calls, at: last, status: None, interrupted: true };
    let mut plan = ReplayPlan {
        files: HashMap::from([(ROOT, fs.root())]),
        places: FilePlaces::default(),
        end: reader.end().unwrap_or(cut_off),
        tail: Duration::from_nanos(reader.end().map_or(0, |end| end.at.saturating_sub(last))),
        made: (0, 0),
    };
    has_room(&states, fs)?;
    for state in &states {
        let of = |what: String| {
            TraceError::Prepare(format!("file {} ({}): {what}", state.file, state.name))
        };
        plan.places.put(state);
        let regular = (state.kind == FileKind::Regular).then_some(state.size);
        let path = plan.places.path(state.file).unwrap_or_default();
        let tag = observer.made(state.file, &path, regular);
        let tag = tag.unwrap_or(content::before(state.file));
        let ino = make(state, (&plan, tag), fs).map_err(of)?;
        plan.files.extend(ino.map(|ino| (state.file, ino)));
        plan.made = (plan.made.0 + 1, plan.made.1 + state.size);
    }
    fs.sync()?;
    match fs.transact() {
        Ok(()) | Err(FsError::Unsupported { .. }) => {}
        Err(e) => return Err(e.into()),
    }
    observer.prepared();
    Ok(plan)
}

/// A file of the trace may be said to be as large as it likes.
fn has_room(states: &[FileState], fs: &dyn FileSystem) -> Result<()> {
    let wanted = states.iter().map(|state| state.size).fold(0, u64::saturating_add);
    let space = fs.statfs()?;
    let free = space.blocks_available.saturating_mul(space.block_size.into());
    if wanted > free {
        let what = format!("they have {wanted} bytes, and {free} are free");
        return Err(TraceError::Prepare(what));
    }
    Ok(())
}

fn make(
    state: &FileState,
    (plan, tag): (&ReplayPlan, u64),
    fs: &dyn FileSystem,
) -> Result<Option<Ino>, String> {
    let words = |e: FsError| e.to_string();
    let dir = state.dir.and_then(|dir| plan.files.get(&dir)).copied();
    let Some(dir) = dir else {
        // In a folder that is no folder of the beginning: the call that moved it there comes first.
        return Err("its folder is not known".into());
    };
    let name = name_bytes(&state.name).ok_or("its name is none")?;
    let folder = NewNode { mode: 0o755, ..NewNode::default() };
    if let Ok(there) = fs.lookup(dir, &name) {
        // Another name of the same place: hard links are told once.
        return Ok(Some(there.ino));
    }
    match state.kind {
        FileKind::Folder => fs.mkdir(dir, &name, folder).map(|attr| Some(attr.ino)).map_err(words),
        FileKind::Symlink => {
            let target = name_bytes(&state.target).unwrap_or_default();
            let made = fs.symlink(dir, &name, &target, NewNode::default());
            made.map(|attr| Some(attr.ino)).map_err(words)
        }
        FileKind::Other => Ok(None),
        FileKind::Regular => {
            let flags = OpenFlags::READ | OpenFlags::WRITE;
            let (attr, fh) = fs.create(dir, &name, NewNode::default(), flags).map_err(words)?;
            let mut at = 0;
            while at < state.size {
                let len = PIECE.min(state.size - at);
                let written = fs.write(fh, at, content::bytes(tag, at, len)).map_err(words)?;
                if written == 0 {
                    return Err("nothing more is written".into());
                }
                at += written as u64;
            }
            fs.release(fh).map_err(words)?;
            Ok(Some(attr.ino))
        }
    }
}
