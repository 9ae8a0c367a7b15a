//! A trace that is put together: files by their paths, calls in any order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;

use crate::error::Result;
use crate::format::{
    FileKind, FileState, ROOT, TraceCall, TraceEnd, TraceEntry, TraceHeader, TraceThread, name_text,
};
use crate::order::CallOrder;
use crate::reader::{BYTES_MAX, TIME_MAX, can_be};
use crate::writer::TraceWriter;

/// Lines of one kind of which nothing is in the trace: how many, and the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeftOutPlaces {
    pub lines: u64,
    /// As [`TraceBuild::at`]; `None`: it is seen only when all are read.
    pub first: Option<(usize, u64)>,
}

/// What has been read so far.
#[derive(Default)]
pub(super) struct TraceBuild {
    pub calls: Vec<TraceCall>,
    pub left_out: BTreeMap<String, LeftOutPlaces>,
    /// Which input is read, and which line of it, from 1.
    pub at: Option<(usize, u64)>,
    threads: BTreeMap<u32, TraceThread>,
    /// Of each process those that it waited for.
    waited: HashMap<u32, Vec<u32>>,
    /// Processes that have ended, and that none of these has waited for.
    ended: Vec<u32>,
    /// Folders that calls have made.
    folders: HashSet<u64>,
    /// What each path below the folder is now.
    paths: HashMap<String, u64>,
    /// Files that were there before.
    states: BTreeMap<u64, FileState>,
    files: u64,
    handles: u64,
}

impl TraceBuild {
    /// A thread, of a process that another one has started.
    pub fn thread(&mut self, thread: u32, (process, parent): (u32, Option<u32>)) {
        if self.threads.contains_key(&thread) {
            return;
        }
        let is_new = self.waited.insert(process, self.ended.clone()).is_none();
        let waited = if is_new { self.ended.clone() } else { Vec::new() };
        let name = String::new();
        self.threads.insert(thread, TraceThread { thread, process, parent, name, waited });
    }

    /// A process has ended: those that begin later come after it.
    pub fn exited(&mut self, process: u32) {
        let Some(waited) = self.waited.get(&process) else { return };
        self.ended.retain(|other| !waited.contains(other));
        self.ended.push(process);
    }

    /// Whether something is known to be a folder.
    pub fn is_folder(&self, file: u64) -> bool {
        let is_state = self.states.get(&file).is_some_and(|state| state.kind == FileKind::Folder);
        file == ROOT || is_state || self.folders.contains(&file)
    }

    /// A folder is made.
    pub fn new_folder(&mut self) -> u64 {
        let folder = self.new_file();
        self.folders.insert(folder);
        folder
    }

    /// A line of which nothing is in the trace.
    pub fn leave_out(&mut self, why: impl Into<String>) {
        let kind = self.left_out.entry(why.into()).or_default();
        kind.lines += 1;
        kind.first = kind.first.into_iter().chain(self.at).min();
    }

    /// The same of lines that were waited for in vain.
    pub fn leave_out_lines(&mut self, lines: impl Iterator<Item = u64>, why: &str) {
        for line in lines {
            self.at = self.at.map(|(input, _)| (input, line));
            self.leave_out(why);
        }
    }

    /// The next line is read.
    pub fn next_line(&mut self) -> u64 {
        self.at = self.at.map(|(input, line)| (input, line + 1));
        self.at.map_or(0, |(_, line)| line)
    }

    /// A call; one that a trace cannot have is left out.
    pub fn add(&mut self, call: TraceCall) {
        match can_be(&call) {
            Ok(()) => self.calls.push(call),
            Err(_) => self.leave_out("an offset, a length or a name that cannot be"),
        }
    }

    pub fn new_handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    pub fn new_file(&mut self) -> u64 {
        self.files += 1;
        self.files
    }

    /// The folder and the name of a path below the folder that counts; `None`: it is that folder.
    pub fn place(&mut self, path: &str) -> Option<(u64, String)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        (!name.is_empty())
            .then(|| (self.file(folder, FileKind::Folder), name_text(name.as_bytes())))
    }

    /// What a path leads to; if it was not seen before, it was there.
    pub fn file(&mut self, path: &str, kind: FileKind) -> u64 {
        if path.is_empty() {
            return ROOT;
        }
        if let Some(file) = self.paths.get(path) {
            return *file;
        }
        let Some((dir, name)) = self.place(path) else { return ROOT };
        let file = self.new_file();
        let (dir, target) = (Some(dir), String::new());
        self.states.insert(file, FileState { file, kind, size: 0, dir, name, target });
        self.paths.insert(path.to_owned(), file);
        file
    }

    /// What is known to be at a path.
    pub fn known(&self, path: &str) -> Option<u64> {
        if path.is_empty() { Some(ROOT) } else { self.paths.get(path).copied() }
    }

    /// From now on a path leads to this, or to nothing.
    pub fn set(&mut self, path: &str, file: Option<u64>) {
        match file {
            Some(file) => drop(self.paths.insert(path.to_owned(), file)),
            None => drop(self.paths.remove(path)),
        }
    }

    /// A folder is called otherwise, with all that is in it.
    pub fn moved(&mut self, from: &str, to: &str) {
        let below = format!("{from}/");
        let inside: Vec<String> =
            self.paths.keys().filter(|path| path.starts_with(&below)).cloned().collect();
        for path in inside {
            if let Some(file) = self.paths.remove(&path) {
                self.paths.insert(format!("{to}{}", &path[from.len()..]), file);
            }
        }
    }

    /// A file that was there before had at least so many bytes.
    pub fn had(&mut self, file: u64, bytes: u64) {
        if let Some(state) = self.states.get_mut(&file).filter(|s| s.kind == FileKind::Regular) {
            state.size = state.size.max(bytes.min(BYTES_MAX));
        }
    }

    /// Puts the calls in order. Those that a trace cannot have are left out.
    pub fn put_in_order(&mut self) {
        self.calls.sort_by_key(|call| call.start);
        let first = self.calls.first().map_or(0, |call| call.start);
        let before = self.calls.len();
        self.calls.retain_mut(|call| {
            call.start -= first;
            call.end = call.end.saturating_sub(first).max(call.start);
            call.end <= TIME_MAX
        });
        self.at = None;
        for _ in self.calls.len()..before {
            self.leave_out("a time that cannot be");
        }
    }

    /// Writes it; how many calls it has.
    pub fn write(self, header: &TraceHeader, out: impl Write) -> Result<u64> {
        let mut writer = TraceWriter::new(out, header)?;
        let mut order = CallOrder::new(None);
        for thread in self.threads.into_values() {
            order.thread(&thread);
            writer.add(&TraceEntry::Thread(thread))?;
        }
        for state in self.states.into_values() {
            writer.add(&TraceEntry::File(state))?;
        }
        let mut at = 0;
        for mut call in self.calls {
            at = call.end.max(at);
            order.call(&mut call);
            writer.add(&TraceEntry::Call(call))?;
        }
        let calls = writer.calls();
        writer.end(TraceEnd { calls, at, status: None, interrupted: false })?;
        Ok(calls)
    }
}
