//! What system calls of strace's text are to files: descriptors, their positions, paths.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::build::Build;
use super::plain;
use super::strace::SystemCall;
use crate::format::{Call, FileKind, Flag, Op};

/// An open file description: what dup(2) and fork(2) share.
#[derive(Debug, Clone)]
struct Description {
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
struct Process {
    parent: Option<u32>,
    /// Of each descriptor the description.
    open: HashMap<i64, usize>,
}

/// The processes of a text.
pub(super) struct Processes {
    folder: PathBuf,
    processes: HashMap<u32, Process>,
    /// Of each thread its process.
    threads: HashMap<u32, u32>,
    descriptions: Vec<Description>,
}

impl Processes {
    pub fn new(folder: &Path) -> Processes {
        let (processes, threads) = (HashMap::new(), HashMap::new());
        Processes { folder: plain(folder), processes, threads, descriptions: Vec::new() }
    }

    /// Takes in a call.
    pub fn call(&mut self, call: &SystemCall, build: &mut Build) {
        let process = *self.threads.entry(call.thread).or_insert(call.thread);
        let parent = self.processes.entry(process).or_default().parent;
        let known = self.known(process, call, build);
        match known {
            Some(()) => build.thread(call.thread, (process, parent)),
            None => build.leave_out(match self.is_about_files(call) {
                true => "outside of the folder, or no file",
                false => "no call of files",
            }),
        }
    }

    fn is_about_files(&self, call: &SystemCall) -> bool {
        call.arguments.iter().any(|word| word.contains("</") || word.starts_with("\"/"))
    }

    fn known(&mut self, process: u32, call: &SystemCall, build: &mut Build) -> Option<()> {
        let arguments = &call.arguments;
        let number = |n: usize| arguments.get(n).and_then(|word| number(word));
        let name = call.name.as_str();
        let new = |op| Call {
            result: call.result.min(0),
            ..Call::new(op, call.thread, call.start, call.end)
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
                build.calls.push(Call { file, handle, ..new(Op::Close) });
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
                    "fsync" if description.is_folder => Op::Fsyncdir,
                    "fsync" => Op::Fsync,
                    "fdatasync" if description.is_folder => Op::Fsyncdir,
                    "fdatasync" => Op::Fdatasync,
                    "ftruncate" => Op::Truncate,
                    _ if arguments.get(1)?.contains("PUNCH_HOLE") => Op::Punch,
                    _ if arguments.get(1)?.contains("ZERO_RANGE") => Op::Zero,
                    _ if arguments.get(1)?.contains("COLLAPSE_RANGE") => Op::Collapse,
                    _ if arguments.get(1)?.contains("INSERT_RANGE") => Op::Insert,
                    _ if arguments.get(1)?.contains("KEEP_SIZE") => Op::Reserve,
                    _ => Op::Allocate,
                };
                let unsigned = |n| number(n).and_then(|n| u64::try_from(n).ok());
                let (offset, len) = match op {
                    Op::Truncate => (unsigned(1)?, 0),
                    Op::Fsync | Op::Fdatasync | Op::Fsyncdir => (0, 0),
                    _ => (unsigned(2)?, unsigned(3)?),
                };
                if op == Op::Truncate && call.result == 0 {
                    description.size = offset;
                }
                build.calls.push(Call { file, handle, offset, len, ..new(op) });
            }
            "sync" | "syncfs" => build.calls.push(new(Op::Sync)),
            "unlink" | "rmdir" | "mkdir" | "unlinkat" | "mkdirat" | "rename" | "renameat"
            | "renameat2" | "link" | "linkat" | "symlink" | "symlinkat" | "truncate" => {
                return self.named(call, build);
            }
            "getdents64" => {
                let place = self.description(process, number(0)?)?;
                let file = Some(self.descriptions[place].file);
                build.calls.push(Call { file, ..new(Op::List) });
            }
            _ => return None,
        }
        Some(())
    }

    /// The path below the folder, from a folder's descriptor and a word of text.
    fn below(&self, dir: Option<&str>, word: &str) -> Option<String> {
        let text = unquoted(word)?;
        let path = match (text.starts_with('/'), dir) {
            (true, _) => PathBuf::from(text),
            (false, Some(dir)) => PathBuf::from(path_of(dir)?).join(text),
            (false, None) => return None,
        };
        Some(plain(&path).strip_prefix(&self.folder).ok()?.to_str()?.to_owned())
    }

    fn description(&self, process: u32, fd: i64) -> Option<usize> {
        self.processes.get(&process)?.open.get(&fd).copied()
    }

    fn cloned(&mut self, process: u32, call: &SystemCall) {
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

    fn duplicated(&mut self, process: u32, call: &SystemCall) {
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

    fn opened(&mut self, process: u32, call: &SystemCall, build: &mut Build) -> Option<()> {
        let words = &call.arguments;
        let (dir, path, flags) = match call.name.as_str() {
            "openat" => (words.first().map(String::as_str), words.get(1)?, words.get(2)?.as_str()),
            "creat" => (None, words.first()?, "O_WRONLY|O_CREAT|O_TRUNC"),
            _ => (None, words.first()?, words.get(1)?.as_str()),
        };
        let mut path = self.below(dir, path).or_else(|| {
            // A relative path of open(2): what strace says that it has led to.
            let found = plain(Path::new(call.result_path.as_deref()?));
            Some(found.strip_prefix(&self.folder).ok()?.to_str()?.to_owned())
        })?;
        let is = |flag: &str| flags.split('|').any(|word| word == flag);
        let mut made = Call::new(Op::Open, call.thread, call.start, call.end);
        made.result = call.result.min(0);
        let (reads, writes) = (is("O_RDONLY") || is("O_RDWR"), is("O_WRONLY") || is("O_RDWR"));
        let all = [
            (reads, Flag::Read),
            (writes, Flag::Write),
            (is("O_APPEND"), Flag::Append),
            (is("O_TRUNC"), Flag::Truncate),
            (is("O_DIRECT"), Flag::Direct),
            (is("O_SYNC"), Flag::Sync),
            (is("O_DSYNC"), Flag::Dsync),
        ];
        made.flags = all.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect();
        let is_folder = is("O_DIRECTORY");
        let known = build.known(&path);
        if call.result < 0 {
            // A lookup that finds nothing; or a file that was there.
            (made.dir, made.name) = build.place(&path).map(|(dir, name)| (Some(dir), name))?;
            made.op = Op::Lookup;
            made.flags.clear();
            build.calls.push(made);
            return Some(());
        }
        let is_new = is("O_CREAT") && known.is_none();
        if is("O_TMPFILE") {
            path = String::new();
            made.op = Op::Tmpfile;
        }
        let file = match (made.op, is_new) {
            (Op::Tmpfile, _) => build.new_file(),
            (_, true) => {
                let (dir, name) = build.place(&path)?;
                (made.op, made.dir, made.name) = (Op::Create, Some(dir), name);
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
        self.descriptions.push(Description {
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
            build.calls.push(made);
        }
        Some(())
    }

    fn moved_bytes(&mut self, process: u32, call: &SystemCall, build: &mut Build) -> Option<()> {
        let number = |n: usize| call.arguments.get(n).and_then(|word| number(word));
        let place = self.description(process, number(0)?)?;
        let description = &mut self.descriptions[place];
        let reads = call.name.contains("read");
        let bytes = u64::try_from(call.result).unwrap_or(0);
        let offset_at = if call.name.starts_with('p') { Some(number(3)?) } else { None };
        let (offset, goes_on) = match offset_at {
            Some(at) => (u64::try_from(at).ok()?, false),
            None if !reads && description.appends => (description.size, true),
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
        let op = if reads { Op::Read } else { Op::Write };
        let mut made = Call::new(op, call.thread, call.start, call.end);
        (made.file, made.handle) = (Some(description.file), Some(description.handle));
        (made.offset, made.len, made.result) = (offset, len, call.result);
        let last = call.arguments.last().map_or("", String::as_str);
        if call.name == "pwritev2" {
            let all = [("RWF_DSYNC", Flag::Dsync), ("RWF_SYNC", Flag::Sync)];
            made.flags.extend(all.iter().filter(|(word, _)| last.contains(word)).map(|(_, f)| *f));
        }
        build.calls.push(made);
        Some(())
    }

    fn named(&mut self, call: &SystemCall, build: &mut Build) -> Option<()> {
        let words = &call.arguments;
        let word = |n: usize| words.get(n).map(String::as_str);
        let at = call.name.ends_with("at") || call.name == "renameat2";
        let first = match at && call.name != "symlinkat" {
            true => self.below(word(0), word(1)?),
            false if call.name.starts_with("symlink") => None,
            false => self.below(None, word(0)?),
        };
        let second = match call.name.as_str() {
            "rename" | "link" => self.below(None, word(1)?),
            "renameat" | "renameat2" | "linkat" => self.below(word(2), word(3)?),
            "symlink" => self.below(None, word(1)?),
            "symlinkat" => self.below(word(1), word(2)?),
            _ => None,
        };
        let succeeded = call.result >= 0;
        let mut made = Call::new(Op::Unlink, call.thread, call.start, call.end);
        made.result = call.result.min(0);
        let removes_folder = words.iter().any(|word| word.contains("AT_REMOVEDIR"));
        match call.name.as_str() {
            "unlink" | "unlinkat" | "rmdir" => {
                let path = first?;
                let is_folder = call.name == "rmdir" || removes_folder;
                made.op = if is_folder { Op::Rmdir } else { Op::Unlink };
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
                made.op = Op::Mkdir;
                (made.dir, made.name) = build.place(&path).map(|(dir, name)| (Some(dir), name))?;
                if succeeded {
                    let file = build.new_file();
                    made.file = Some(file);
                    build.set(&path, Some(file));
                }
            }
            "symlink" | "symlinkat" => {
                let path = second?;
                made.op = Op::Symlink;
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
                (made.op, made.file) = (Op::Truncate, Some(build.file(&path, FileKind::Regular)));
                made.offset = u64::try_from(number(word(1)?)?).ok()?;
            }
            _ => {
                let (from, to) = (first?, second?);
                let is_link = call.name.starts_with("link");
                let exchange = words.iter().any(|word| word.contains("RENAME_EXCHANGE"));
                made.op = match (is_link, exchange) {
                    (true, _) => Op::Link,
                    (_, true) => Op::Exchange,
                    _ => Op::Rename,
                };
                if words.iter().any(|word| word.contains("RENAME_NOREPLACE")) {
                    made.flags.push(Flag::NoReplace);
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
                        Op::Rename => {
                            build.set(&from, None);
                            build.moved(&from, &to);
                        }
                        Op::Exchange => build.set(&from, other),
                        _ => {}
                    }
                }
            }
        }
        build.calls.push(made);
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
