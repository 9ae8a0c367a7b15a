//! The processes of strace's text: where each works, what it has open, who has begun it.
//!
//! A child has the descriptors that its parent had when clone(2) began. CLONE_FILES shares them,
//! until one of the two makes another program of itself (execve).

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::build::TraceBuild;
use super::descriptors::{Descriptor, DescriptorTable, EndedHandles, OpenHandle};
use super::plain;
use super::strace_line::{StraceCall, number, path_of, unquoted};
use crate::format::{CallOp, TraceCall};

/// An open file description.
#[derive(Debug, Clone)]
pub(super) struct OpenDescription {
    pub file: u64,
    pub handle: u64,
    pub is_folder: bool,
    pub appends: bool,
    pub position: u64,
}

struct ProcessState {
    parent: Option<u32>,
    /// Where it works, as far as the text has said it.
    folder: Option<Rc<Path>>,
    open: Rc<RefCell<DescriptorTable>>,
    /// How many of its threads have not ended.
    threads: usize,
}

/// The processes of a text.
pub(super) struct Processes {
    /// The folder that counts.
    pub folder: PathBuf,
    processes: HashMap<u32, ProcessState>,
    /// Of each thread its process.
    threads: HashMap<u32, u32>,
    /// By their handles.
    pub descriptions: HashMap<u64, OpenDescription>,
    /// Bytes of each file, as far as they are known here.
    pub sizes: HashMap<u64, u64>,
    pub ended: EndedHandles,
}

/// Why nothing of a line is in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// It is about no file that is known, or about none.
    Elsewhere,
    /// A path or a name is longer than Linux takes, or has a byte that none has.
    NoPath,
    /// O_PATH.
    PathAlone,
    /// It failed for a reason that is not in the trace.
    Refused,
}

impl LeftOut {
    fn words(self, call: &StraceCall) -> &'static str {
        let is_about_files = |word: &String| word.contains("</") || word.starts_with("\"/");
        match self {
            LeftOut::Elsewhere if call.arguments.iter().any(is_about_files) => {
                "outside of the folder, or no file"
            }
            LeftOut::Elsewhere => "no call of files",
            LeftOut::NoPath => "a path or a name that is too long, or cannot be",
            LeftOut::PathAlone => "opened for its path alone (O_PATH)",
            LeftOut::Refused => "failed for a reason that a trace does not have",
        }
    }
}

/// What was done with a line.
pub(super) type ImportResult<T = ()> = Result<T, LeftOut>;

impl Processes {
    pub fn new(folder: &Path) -> Processes {
        Processes {
            folder: plain(folder),
            processes: HashMap::new(),
            threads: HashMap::new(),
            descriptions: HashMap::new(),
            sizes: HashMap::new(),
            ended: EndedHandles::default(),
        }
    }

    /// Takes in a call.
    pub fn call(&mut self, call: &StraceCall, build: &mut TraceBuild) {
        let process = self.process_of(call.thread);
        let parent = self.state(process).parent;
        build.now = (call.thread, call.start);
        self.note_folder(process, call);
        let before = build.calls.len();
        let taken = self.taken(process, call, build);
        self.close_ended((call.thread, call.start, call.end), call.result.min(0), build);
        if taken.is_ok() || build.calls.len() > before {
            build.thread(call.thread, (process, parent));
        }
        if let Err(why) = taken {
            build.leave_out(why.words(call));
        }
    }

    fn process_of(&mut self, thread: u32) -> u32 {
        if let Some(process) = self.threads.get(&thread) {
            return *process;
        }
        self.threads.insert(thread, thread);
        thread
    }

    fn state(&mut self, process: u32) -> &mut ProcessState {
        self.processes.entry(process).or_insert_with(|| ProcessState {
            parent: None,
            folder: None,
            open: Rc::default(),
            threads: 1,
        })
    }

    /// Where a process works.
    pub fn folder_of(&self, process: u32) -> &Path {
        let known = self.processes.get(&process).and_then(|process| process.folder.as_deref());
        known.unwrap_or(&self.folder)
    }

    /// strace says where a process works wherever a path is meant from there.
    fn note_folder(&mut self, process: u32, call: &StraceCall) {
        let first = call.arguments.first().map(String::as_str);
        let said = call.arguments.iter().find(|word| word.starts_with("AT_FDCWD<"));
        let folder = match call.name.as_str() {
            "chdir" if call.result == 0 => first.and_then(unquoted),
            "fchdir" if call.result == 0 => first.and_then(path_of),
            _ => said.and_then(|word| path_of(word)),
        };
        let Some(folder) = folder.map(|bytes| PathBuf::from(OsString::from_vec(bytes))) else {
            return;
        };
        let state = self.state(process);
        let folder = match (folder.is_absolute(), &state.folder) {
            (false, Some(before)) => plain(&before.join(folder)),
            _ => folder,
        };
        if state.folder.as_deref() != Some(&folder) {
            state.folder = Some(folder.into());
        }
    }

    /// A process or a thread begins, when this call does.
    pub fn cloned(&mut self, call: &StraceCall, build: &mut TraceBuild) {
        let Some(child) = u32::try_from(call.result).ok().filter(|child| *child > 0) else {
            return;
        };
        let process = self.process_of(call.thread);
        let has = |flag: &str| call.arguments.iter().any(|word| word.contains(flag));
        let state = self.state(process);
        let before = if has("CLONE_THREAD") {
            state.threads += 1;
            self.threads.insert(child, process);
            None
        } else {
            let open = match has("CLONE_FILES") {
                true => Rc::clone(&state.open),
                false => Rc::new(RefCell::new(state.open.borrow().clone())),
            };
            let folder = state.folder.clone();
            self.threads.insert(child, child);
            let begun = ProcessState { parent: Some(process), folder, open, threads: 1 };
            self.processes.insert(child, begun)
        };
        // Of a process that had the number before, and was not seen to end.
        drop(before);
        self.close_ended((call.thread, call.start, call.start), 0, build);
    }

    /// A thread has ended, and its process with the last one: what it alone had open is closed.
    pub fn exited(&mut self, (thread, time): (u32, u64), build: &mut TraceBuild) {
        let Some(process) = self.threads.remove(&thread) else { return };
        let Some(state) = self.processes.get_mut(&process) else { return };
        state.threads = state.threads.saturating_sub(1);
        if state.threads > 0 {
            return;
        }
        let parent = state.parent;
        self.processes.remove(&process);
        let before = build.calls.len();
        self.close_ended((thread, time, time), 0, build);
        if build.calls.len() > before {
            build.thread(thread, (process, parent));
        }
        build.exited(process);
    }

    /// Another program begins in a process.
    pub fn executed(&mut self, process: u32) {
        let state = self.state(process);
        let mut own = state.open.borrow().clone();
        own.end_with_exec();
        state.open = Rc::new(RefCell::new(own));
    }

    /// The files that no descriptor leads to any more are closed.
    fn close_ended(
        &mut self,
        (thread, start, end): (u32, u64, u64),
        result: i64,
        build: &mut TraceBuild,
    ) {
        let mut ended = std::mem::take(&mut *self.ended.borrow_mut());
        ended.sort_unstable();
        for handle in ended {
            let Some(description) = self.descriptions.remove(&handle) else { continue };
            if description.is_folder {
                continue;
            }
            let (file, handle) = (Some(description.file), Some(handle));
            let call = TraceCall::new(CallOp::Close, thread, start, end);
            build.add(TraceCall { file, handle, result, ..call });
        }
    }

    /// A descriptor leads to a file from now on.
    pub fn opens(&mut self, process: u32, fd: usize, description: OpenDescription, ends: bool) {
        let open = OpenHandle::new(description.handle, &self.ended);
        self.descriptions.insert(description.handle, description);
        let descriptor = Descriptor { open, ends_with_exec: ends };
        self.state(process).open.borrow_mut().set(fd, Some(descriptor));
    }

    /// A descriptor leads to nothing that is known from now on; whether it did.
    pub fn closes(&mut self, process: u32, fd: usize) -> bool {
        let mut open = self.state(process).open.borrow_mut();
        let was_open = open.get(fd).is_some();
        open.set(fd, None);
        was_open
    }

    /// `close_range`: the descriptors of a range are closed, or end with the next program.
    pub fn closes_range(&mut self, process: u32, call: &StraceCall) {
        let bound = |n: usize| call.arguments.get(n).and_then(|word| number(word));
        let Some((first, last)) = bound(0).zip(bound(1)) else { return };
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let last = usize::try_from(last).unwrap_or(usize::MAX);
        let later = call.arguments.iter().any(|word| word.contains("CLOSE_RANGE_CLOEXEC"));
        let mut open = self.state(process).open.borrow_mut();
        for fd in open.within(first, last) {
            let descriptor = open.get(fd).cloned().filter(|_| later);
            let kept = descriptor.map(|known| Descriptor { ends_with_exec: true, ..known });
            open.set(fd, kept);
        }
    }

    /// `dup`, `dup2`, `dup3` and what fcntl(2) has of it.
    pub fn duplicated(&mut self, process: u32, call: &StraceCall) {
        let word = |n: usize| call.arguments.get(n).map_or("", String::as_str);
        let from = number(word(0)).and_then(|fd| usize::try_from(fd).ok());
        let (Some(from), true) = (from, call.result >= 0) else { return };
        let mut open = self.state(process).open.borrow_mut();
        let known = open.get(from).cloned();
        if call.name == "fcntl" && word(1).contains("F_SETFD") {
            let ends_with_exec = word(2).contains("FD_CLOEXEC");
            if let Some(known) = known {
                open.set(from, Some(Descriptor { ends_with_exec, ..known }));
            }
            return;
        }
        let is_dup = call.name != "fcntl" || word(1).contains("F_DUPFD");
        let to = usize::try_from(call.result).ok().filter(|to| is_dup && *to != from);
        let Some(to) = to else { return };
        let flags = if call.name == "fcntl" { word(1) } else { word(2) };
        let ends_with_exec = flags.contains("CLOEXEC");
        open.set(to, known.map(|known| Descriptor { ends_with_exec, ..known }));
    }

    /// What a descriptor leads to.
    pub fn description(
        &mut self,
        process: u32,
        fd: Option<i64>,
    ) -> ImportResult<&mut OpenDescription> {
        let open = &self.processes.get(&process).ok_or(LeftOut::Elsewhere)?.open;
        let fd = fd.and_then(|fd| usize::try_from(fd).ok()).ok_or(LeftOut::Elsewhere)?;
        let handle = open.borrow().get(fd).map(|descriptor| descriptor.open.handle);
        let known = handle.and_then(|handle| self.descriptions.get_mut(&handle));
        known.ok_or(LeftOut::Elsewhere)
    }
}
