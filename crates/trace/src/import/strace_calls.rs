//! What system calls of strace's text are to files: descriptors, their positions, paths.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::build::TraceBuild;
use super::plain;
use super::strace::StraceCall;
use crate::format::{CallFlag, CallOp, FileKind, TraceCall};

/// An open file description: what dup(2) and fork(2) share.
#[derive(Debug, Clone)]
struct OpenDescription {
    file: u64,
    handle: u64,
    is_folder: bool,
    appends: bool,
    /// How many descriptors lead to it.
    descriptors: usize,
    position: u64,
    /// As far as it is known here.
    size: u64,
}

#[derive(Debug, Default, Clone)]
struct ProcessFiles {
    parent: Option<u32>,
    /// Where it works, as far as the text has said it.
    folder: Option<PathBuf>,
    /// Of each descriptor the description.
    open: HashMap<i64, usize>,
}

/// The processes of a text.
pub(super) struct Processes {
    folder: PathBuf,
    processes: HashMap<u32, ProcessFiles>,
    /// Of each thread its process.
    threads: HashMap<u32, u32>,
    descriptions: Vec<OpenDescription>,
}

impl Processes {
    pub fn new(folder: &Path) -> Processes {
        let (processes, threads) = (HashMap::new(), HashMap::new());
        Processes { folder: plain(folder), processes, threads, descriptions: Vec::new() }
    }

    /// Takes in a call.
    pub fn call(&mut self, call: &StraceCall, build: &mut TraceBuild) {
        let process = *self.threads.entry(call.thread).or_insert(call.thread);
        let parent = self.processes.entry(process).or_default().parent;
        self.note_folder(process, call);
        let known = self.known(process, call, build);
        match known {
            Some(()) => build.thread(call.thread, (process, parent)),
            None => build.leave_out(match self.is_about_files(call) {
                true => "outside of the folder, or no file",
                false => "no call of files",
            }),
        }
    }

    /// strace says where a process works wherever a path is meant from there.
    fn note_folder(&mut self, process: u32, call: &StraceCall) {
        let first = call.arguments.first().map(String::as_str);
        let said = call.arguments.iter().find(|word| word.starts_with("AT_FDCWD<"));
        let folder = match call.name.as_str() {
            "chdir" if call.result == 0 => first.and_then(unquoted).map(PathBuf::from),
            "fchdir" if call.result == 0 => first.and_then(path_of).map(PathBuf::from),
            _ => said.and_then(|word| path_of(word)).map(PathBuf::from),
        };
        let Some(folder) = folder else { return };
        let known = self.processes.entry(process).or_default();
        known.folder = Some(match (folder.is_absolute(), &known.folder) {
            (false, Some(before)) => plain(&before.join(folder)),
            _ => folder,
        });
    }

    fn is_about_files(&self, call: &StraceCall) -> bool {
        call.arguments.iter().any(|word| word.contains("</") || word.starts_with("\"/"))
    }

    fn known(&mut self, process: u32, call: &StraceCall, build: &mut TraceBuild) -> Option<()> {
        let arguments = &call.arguments;
        let number = |n: usize| arguments.get(n).and_then(|word| number(word));
        let name = call.name.as_str();
        let new = |op| TraceCall {
            result: call.result.min(0),
            ..TraceCall::new(op, call.thread, call.start, call.end)
        };
        match name {
            "clone" | "clone3" | "fork" | "vfork" => {
                self.cloned(process, call);
                return None;
            }
            "dup" | "dup2" | "dup3" | "fcntl" => {
                self.duplicated(process, call);
                return None;
            }
            "open" | "openat" | "creat" => return self.opened(process, call, build),
            "close" => {
                let place = self.processes.get_mut(&process)?.open.remove(&number(0)?)?;
                let description = &mut self.descriptions[place];
                description.descriptors = description.descriptors.saturating_sub(1);
                if description.descriptors > 0 || description.is_folder {
                    return None;
                }
                let (file, handle) = (Some(description.file), Some(description.handle));
                build.add(TraceCall { file, handle, ..new(CallOp::Close) });
            }
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "write" | "pwrite64"
            | "writev" | "pwritev" | "pwritev2" => return self.moved_bytes(process, call, build),
            "lseek" => {
                let place = self.description(process, number(0)?)?;
                self.descriptions[place].position = u64::try_from(call.result).ok()?;
                return None;
            }
            "fsync" | "fdatasync" | "ftruncate" | "fallocate" => {
                let place = self.description(process, number(0)?)?;
                let description = &mut self.descriptions[place];
                let (file, handle) = (Some(description.file), Some(description.handle));
                let handle = handle.filter(|_| !description.is_folder && name != "ftruncate");
                let op = match name {
                    "fsync" if description.is_folder => CallOp::Fsyncdir,
                    "fsync" => CallOp::Fsync,
                    "fdatasync" if description.is_folder => CallOp::Fsyncdir,
                    "fdatasync" => CallOp::Fdatasync,
                    "ftruncate" => CallOp::Truncate,
                    _ if arguments.get(1)?.contains("PUNCH_HOLE") => CallOp::Punch,
                    _ if arguments.get(1)?.contains("ZERO_RANGE") => CallOp::Zero,
                    _ if arguments.get(1)?.contains("COLLAPSE_RANGE") => CallOp::Collapse,
                    _ if arguments.get(1)?.contains("INSERT_RANGE") => CallOp::Insert,
                    _ if arguments.get(1)?.contains("KEEP_SIZE") => CallOp::Reserve,
                    _ => CallOp::Allocate,
                };
                let unsigned = |n| number(n).and_then(|n| u64::try_from(n).ok());
                let (offset, len) = match op {
                    CallOp::Truncate => (unsigned(1)?, 0),
                    CallOp::Fsync | CallOp::Fdatasync | CallOp::Fsyncdir => (0, 0),
                    _ => (unsigned(2)?, unsigned(3)?),
                };
                if op == CallOp::Truncate && call.result == 0 {
                    description.size = offset;
                }
                build.add(TraceCall { file, handle, offset, len, ..new(op) });
            }
            "sync" | "syncfs" => build.add(new(CallOp::Sync)),
            "unlink" | "rmdir" | "mkdir" | "unlinkat" | "mkdirat" | "rename" | "renameat"
            | "renameat2" | "link" | "linkat" | "symlink" | "symlinkat" | "truncate" => {
                return self.named(process, call, build);
            }
            "copy_file_range" | "sendfile" | "sendfile64" => {
                return self.copied(process, call, build);
            }
            "getdents64" => {
                let place = self.description(process, number(0)?)?;
                let file = Some(self.descriptions[place].file);
                build.add(TraceCall { file, ..new(CallOp::List) });
            }
            _ => return None,
        }
        Some(())
    }

    /// The path below the folder that counts, from a folder's descriptor (where a process works, if
    /// there is none) and a word of text.
    fn below(&self, process: u32, dir: Option<&str>, word: &str) -> Option<String> {
        let text = unquoted(word)?;
        let path = match (text.starts_with('/'), dir) {
            (true, _) => PathBuf::from(text),
            (false, Some(dir)) => PathBuf::from(path_of(dir)?).join(text),
            (false, None) => {
                let known = self.processes.get(&process).and_then(|p| p.folder.as_ref());
                known.unwrap_or(&self.folder).join(text)
            }
        };
        Some(plain(&path).strip_prefix(&self.folder).ok()?.to_str()?.to_owned())
    }

    fn description(&self, process: u32, fd: i64) -> Option<usize> {
        self.processes.get(&process)?.open.get(&fd).copied()
    }

    fn cloned(&mut self, process: u32, call: &StraceCall) {
        let Some(child) = u32::try_from(call.result).ok().filter(|child| *child > 0) else {
            return;
        };
        let flags = call.arguments.join(" ");
        if flags.contains("CLONE_THREAD") {
            self.threads.insert(child, process);
            return;
        }
        // What both have open stays open until both have closed it.
        let mut own = self.processes.get(&process).cloned().unwrap_or_default();
        own.open.values().for_each(|place| self.descriptions[*place].descriptors += 1);
        own.parent = Some(process);
        self.processes.insert(child, own);
        self.threads.insert(child, child);
    }

    fn duplicated(&mut self, process: u32, call: &StraceCall) {
        let is_dup =
            call.name != "fcntl" || call.arguments.get(1).is_some_and(|w| w.contains("F_DUPFD"));
        let from = call.arguments.first().and_then(|word| number(word));
        if !is_dup || call.result < 0 {
            return;
        }
        let Some(known) = self.processes.get_mut(&process) else { return };
        let place = from.and_then(|fd| known.open.get(&fd)).copied();
        let before = match place {
            Some(place) => known.open.insert(call.result, place),
            None => known.open.remove(&call.result),
        };
        if let Some(place) = place.filter(|place| before != Some(*place)) {
            self.descriptions[place].descriptors += 1;
        }
        if let Some(before) = before.filter(|before| place != Some(*before)) {
            let description = &mut self.descriptions[before];
            description.descriptors = description.descriptors.saturating_sub(1);
        }
    }

    fn opened(&mut self, process: u32, call: &StraceCall, build: &mut TraceBuild) -> Option<()> {
        let words = &call.arguments;
        let (dir, path, flags) = match call.name.as_str() {
            "openat" => (words.first().map(String::as_str), words.get(1)?, words.get(2)?.as_str()),
            "creat" => (None, words.first()?, "O_WRONLY|O_CREAT|O_TRUNC"),
            _ => (None, words.first()?, words.get(1)?.as_str()),
        };
        let mut path = self.below(process, dir, path)?;
        let is = |flag: &str| flags.split('|').any(|word| word == flag);
        let mut made = TraceCall::new(CallOp::Open, call.thread, call.start, call.end);
        made.result = call.result.min(0);
        let (reads, writes) = (is("O_RDONLY") || is("O_RDWR"), is("O_WRONLY") || is("O_RDWR"));
        let all = [
            (reads, CallFlag::Read),
            (writes, CallFlag::Write),
            (is("O_APPEND"), CallFlag::Append),
            (is("O_TRUNC"), CallFlag::Truncate),
            (is("O_DIRECT"), CallFlag::Direct),
            (is("O_SYNC"), CallFlag::Sync),
            (is("O_DSYNC"), CallFlag::Dsync),
        ];
        made.flags = all.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect();
        let known = build.known(&path);
        let is_folder = is("O_DIRECTORY") || known.is_some_and(|file| build.is_folder(file));
        if call.result < 0 {
            // A lookup that finds nothing; or a file that was there.
            (made.dir, made.name) = build.place(&path).map(|(dir, name)| (Some(dir), name))?;
            made.op = CallOp::Lookup;
            made.flags.clear();
            build.add(made);
            return Some(());
        }
        let is_new = is("O_CREAT") && known.is_none();
        if is("O_TMPFILE") {
            path = String::new();
            made.op = CallOp::Tmpfile;
        }
        let file = match (made.op, is_new) {
            (CallOp::Tmpfile, _) => build.new_file(),
            (_, true) => {
                let (dir, name) = build.place(&path)?;
                (made.op, made.dir, made.name) = (CallOp::Create, Some(dir), name);
                let file = build.new_file();
                build.set(&path, Some(file));
                file
            }
            _ => build.file(&path, if is_folder { FileKind::Folder } else { FileKind::Regular }),
        };
        let handle = build.new_handle();
        let size = self.descriptions.iter().rev().find(|d| d.file == file).map_or(0, |d| d.size);
        let size = if is("O_TRUNC") { 0 } else { size };
        let appends = is("O_APPEND");
        let place = self.descriptions.len();
        self.descriptions.push(OpenDescription {
            file,
            handle,
            is_folder,
            appends,
            descriptors: 1,
            position: 0,
            size,
        });
        self.processes.get_mut(&process)?.open.insert(call.result, place);
        (made.file, made.handle) = (Some(file), Some(handle));
        if !is_folder {
            build.add(made);
        }
        Some(())
    }

    fn moved_bytes(
        &mut self,
        process: u32,
        call: &StraceCall,
        build: &mut TraceBuild,
    ) -> Option<()> {
        let number = |n: usize| call.arguments.get(n).and_then(|word| number(word));
        let place = self.description(process, number(0)?)?;
        let description = &mut self.descriptions[place];
        let reads = call.name.contains("read");
        let bytes = u64::try_from(call.result).unwrap_or(0);
        let offset_at = if call.name.starts_with('p') { Some(number(3)?) } else { None };
        // As Linux has it, O_APPEND counts more than an offset.
        let (offset, goes_on) = match offset_at {
            _ if !reads && description.appends => (description.size, offset_at.is_none()),
            Some(at) => (u64::try_from(at).ok()?, false),
            None => (description.position, true),
        };
        // Of a vector strace says how much was moved, not how much was asked for.
        let asked =
            number(2).filter(|_| !call.name.contains('v')).and_then(|n| u64::try_from(n).ok());
        let len = asked.unwrap_or(bytes).max(bytes);
        let end = offset.saturating_add(bytes);
        if goes_on {
            description.position = end;
        }
        if reads && end > description.size {
            build.had(description.file, end);
        }
        description.size = description.size.max(end);
        let op = if reads { CallOp::Read } else { CallOp::Write };
        let mut made = TraceCall::new(op, call.thread, call.start, call.end);
        (made.file, made.handle) = (Some(description.file), Some(description.handle));
        (made.offset, made.len, made.result) = (offset, len, call.result);
        let last = call.arguments.last().map_or("", String::as_str);
        if call.name == "pwritev2" {
            let all = [("RWF_DSYNC", CallFlag::Dsync), ("RWF_SYNC", CallFlag::Sync)];
            made.flags.extend(all.iter().filter(|(word, _)| last.contains(word)).map(|(_, f)| *f));
        }
        build.add(made);
        Some(())
    }

    /// Bytes go from one file to another one without the program: as a read and a write.
    fn copied(&mut self, process: u32, call: &StraceCall, build: &mut TraceBuild) -> Option<()> {
        let word = |n: usize| call.arguments.get(n).map(String::as_str);
        let is_range = call.name == "copy_file_range";
        let (from, to) = if is_range { (0, 2) } else { (1, 0) };
        let ends = [
            (from, "read", if is_range { word(1) } else { word(2) }),
            (to, "write", { if is_range { word(3) } else { None } }),
        ];
        let mut any = None;
        for (place, name, offset) in ends {
            let at = offset.and_then(|text| number(text.trim_matches(['[', ']'])));
            let mut arguments =
                vec![word(place)?.to_owned(), String::new(), call.result.to_string()];
            arguments.extend(at.map(|at| at.to_string()));
            let name = if at.is_some() { format!("p{name}64") } else { name.to_owned() };
            let StraceCall { thread, result, start, end, .. } = *call;
            let half =
                StraceCall { thread, name, arguments, result, result_path: None, start, end };
            any = self.moved_bytes(process, &half, build).or(any);
        }
        any
    }

    fn named(&mut self, process: u32, call: &StraceCall, build: &mut TraceBuild) -> Option<()> {
        let words = &call.arguments;
        let word = |n: usize| words.get(n).map(String::as_str);
        let at = call.name.ends_with("at") || call.name == "renameat2";
        let first = match at && call.name != "symlinkat" {
            true => self.below(process, word(0), word(1)?),
            false if call.name.starts_with("symlink") => None,
            false => self.below(process, None, word(0)?),
        };
        let second = match call.name.as_str() {
            "rename" | "link" => self.below(process, None, word(1)?),
            "renameat" | "renameat2" | "linkat" => self.below(process, word(2), word(3)?),
            "symlink" => self.below(process, None, word(1)?),
            "symlinkat" => self.below(process, word(1), word(2)?),
            _ => None,
        };
        let succeeded = call.result >= 0;
        let mut made = TraceCall::new(CallOp::Unlink, call.thread, call.start, call.end);
        made.result = call.result.min(0);
        let removes_folder = words.iter().any(|word| word.contains("AT_REMOVEDIR"));
        match call.name.as_str() {
            "unlink" | "unlinkat" | "rmdir" => {
                let path = first?;
                let is_folder = call.name == "rmdir" || removes_folder;
                made.op = if is_folder { CallOp::Rmdir } else { CallOp::Unlink };
                let kind = if is_folder { FileKind::Folder } else { FileKind::Regular };
                made.file =
                    if succeeded { Some(build.file(&path, kind)) } else { build.known(&path) };
                (made.dir, made.name) = build.place(&path).map(|(dir, name)| (Some(dir), name))?;
                if succeeded {
                    build.set(&path, None);
                }
            }
            "mkdir" | "mkdirat" => {
                let path = first?;
                made.op = CallOp::Mkdir;
                (made.dir, made.name) = build.place(&path).map(|(dir, name)| (Some(dir), name))?;
                if succeeded {
                    let file = build.new_folder();
                    made.file = Some(file);
                    build.set(&path, Some(file));
                }
            }
            "symlink" | "symlinkat" => {
                let path = second?;
                made.op = CallOp::Symlink;
                (made.dir, made.name) = build.place(&path).map(|(dir, name)| (Some(dir), name))?;
                made.to = crate::format::name_text(unquoted(word(0)?)?.as_bytes());
                if succeeded {
                    let file = build.new_file();
                    made.file = Some(file);
                    build.set(&path, Some(file));
                }
            }
            "truncate" => {
                let path = first?;
                (made.op, made.file) =
                    (CallOp::Truncate, Some(build.file(&path, FileKind::Regular)));
                made.offset = u64::try_from(number(word(1)?)?).ok()?;
            }
            _ => {
                let (from, to) = (first?, second?);
                let is_link = call.name.starts_with("link");
                let exchange = words.iter().any(|word| word.contains("RENAME_EXCHANGE"));
                made.op = match (is_link, exchange) {
                    (true, _) => CallOp::Link,
                    (_, true) => CallOp::Exchange,
                    _ => CallOp::Rename,
                };
                if words.iter().any(|word| word.contains("RENAME_NOREPLACE")) {
                    made.flags.push(CallFlag::NoReplace);
                }
                let file = if succeeded {
                    Some(build.file(&from, FileKind::Regular))
                } else {
                    build.known(&from)
                };
                made.file = file;
                let (dir, name) = build.place(&from)?;
                if !is_link {
                    (made.dir, made.name) = (Some(dir), name);
                }
                (made.to_dir, made.to) = build.place(&to).map(|(dir, name)| (Some(dir), name))?;
                if succeeded {
                    let other = build.known(&to);
                    build.set(&to, file);
                    match made.op {
                        CallOp::Rename => {
                            build.set(&from, None);
                            build.moved(&from, &to);
                        }
                        CallOp::Exchange => {
                            build.set(&from, other);
                            // A name that no path has.
                            build.moved(&to, "\0");
                            build.moved(&from, &to);
                            build.moved("\0", &from);
                        }
                        _ => {}
                    }
                }
            }
        }
        build.add(made);
        Some(())
    }
}

/// A number at the beginning of a word: `3</tmp/x>`, `4096`.
fn number(word: &str) -> Option<i64> {
    let digits = word.split(['<', ' ', '*']).next()?;
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
        None => digits.parse().ok(),
    }
}

/// What is in the angle brackets of a descriptor.
fn path_of(word: &str) -> Option<&str> {
    Some(word.split_once('<')?.1.rsplit_once('>')?.0)
}

/// The text in quotation marks, with C's escapes. (-s0 does not shorten paths.)
fn unquoted(word: &str) -> Option<String> {
    let text = word.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'v' => bytes.push(11),
            b'f' => bytes.push(12),
            digit @ b'0'..=b'7' => {
                let mut code = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(next @ b'0'..=b'7') = rest.peek().copied() {
                        code = code * 8 + u32::from(next - b'0');
                        rest.next();
                    }
                }
                bytes.push(u8::try_from(code).ok()?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}
