//! What system calls of strace's text are to open files.

use super::build::TraceBuild;
use super::processes::{ImportResult, LeftOut, OpenDescription, Processes};
use super::strace::is_clone;
use super::strace_line::{StraceCall, number};
use crate::format::{CallFlag, CallOp, TraceCall};

impl Processes {
    /// Takes in a call.
    pub(super) fn taken(
        &mut self,
        process: u32,
        call: &StraceCall,
        build: &mut TraceBuild,
    ) -> ImportResult {
        let fd = call.arguments.first().and_then(|word| number(word));
        match call.name.as_str() {
            // It was taken in where it began.
            name if is_clone(name) => Err(LeftOut::Elsewhere),
            "dup" | "dup2" | "dup3" | "fcntl" => {
                self.duplicated(process, call);
                Err(LeftOut::Elsewhere)
            }
            "execve" | "execveat" => {
                if call.result == 0 {
                    self.executed(process);
                }
                Err(LeftOut::Elsewhere)
            }
            "close_range" => {
                self.closes_range(process, call);
                Err(LeftOut::Elsewhere)
            }
            "open" | "openat" | "openat2" | "creat" => self.opened(process, call, build),
            "close" => {
                let fd = fd.and_then(|fd| usize::try_from(fd).ok()).ok_or(LeftOut::Elsewhere)?;
                let was_open = self.closes(process, fd);
                let ends = was_open && !self.ended.borrow().is_empty();
                let ended = self.ended.borrow().last().copied();
                let is_folder =
                    ended.is_some_and(|h| self.descriptions.get(&h).is_some_and(|d| d.is_folder));
                if ends && !is_folder { Ok(()) } else { Err(LeftOut::Elsewhere) }
            }
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "write" | "pwrite64"
            | "writev" | "pwritev" | "pwritev2" => self.moved_bytes(process, call, build),
            "lseek" => {
                let description = self.description(process, fd)?;
                if let Ok(position) = u64::try_from(call.result) {
                    description.position = position;
                    if call.arguments.get(2).is_some_and(|word| word == "SEEK_END") {
                        self.saw_size(process, (fd, call), build);
                    }
                }
                Err(LeftOut::Elsewhere)
            }
            "fstat" | "newfstatat" => {
                self.saw_size(process, (fd, call), build);
                Err(LeftOut::Elsewhere)
            }
            "fsync" | "fdatasync" | "ftruncate" | "fallocate" => {
                self.on_open_file(process, (fd, call), build)
            }
            "sync" | "syncfs" => {
                build.add(new(CallOp::Sync, call));
                Ok(())
            }
            "copy_file_range" | "sendfile" | "sendfile64" => self.copied(process, call, build),
            "getdents64" => {
                let file = Some(self.description(process, fd)?.file);
                build.add(TraceCall { file, ..new(CallOp::List, call) });
                Ok(())
            }
            _ => self.named(process, call, build),
        }
    }

    /// The size of an open file is said: `st_size`, or where its end is.
    fn saw_size(
        &mut self,
        process: u32,
        (fd, call): (Option<i64>, &StraceCall),
        build: &mut TraceBuild,
    ) {
        let words = &call.arguments;
        let is_of_fd = call.name != "newfstatat" || words.get(1).is_some_and(|w| w == "\"\"");
        let said = match call.name.as_str() {
            "lseek" => match words.get(1).and_then(|word| number(word)) {
                Some(0) => u64::try_from(call.result).ok(),
                _ => None,
            },
            _ => words.iter().find(|word| word.contains("st_mode=S_IFREG")).and_then(|word| {
                let (_, size) = word.split_once("st_size=")?;
                size.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            }),
        };
        let Some(size) = said.filter(|_| is_of_fd && call.result >= 0) else { return };
        let Ok(file) = self.description(process, fd).map(|description| description.file) else {
            return;
        };
        let known = self.sizes.entry(file).or_default();
        if size > *known {
            *known = size;
            build.had(file, size);
        }
    }

    fn on_open_file(
        &mut self,
        process: u32,
        (fd, call): (Option<i64>, &StraceCall),
        build: &mut TraceBuild,
    ) -> ImportResult {
        let unsigned = |n: usize| {
            let word = call.arguments.get(n).and_then(|word| number(word));
            word.and_then(|n| u64::try_from(n).ok()).ok_or(LeftOut::Elsewhere)
        };
        let description = self.description(process, fd)?;
        let is_folder = description.is_folder;
        let (file, handle) = (description.file, description.handle);
        let mode = call.arguments.get(1).map_or("", String::as_str);
        let op = match call.name.as_str() {
            "fsync" | "fdatasync" if is_folder => CallOp::Fsyncdir,
            "fsync" => CallOp::Fsync,
            "fdatasync" => CallOp::Fdatasync,
            "ftruncate" => CallOp::Truncate,
            _ if mode.contains("PUNCH_HOLE") => CallOp::Punch,
            _ if mode.contains("ZERO_RANGE") => CallOp::Zero,
            _ if mode.contains("COLLAPSE_RANGE") => CallOp::Collapse,
            _ if mode.contains("INSERT_RANGE") => CallOp::Insert,
            _ if mode.contains("KEEP_SIZE") => CallOp::Reserve,
            _ => CallOp::Allocate,
        };
        let mut made = TraceCall { file: Some(file), ..new(op, call) };
        made.handle = (!is_folder && op != CallOp::Truncate).then_some(handle);
        (made.offset, made.len) = match op {
            CallOp::Truncate => (unsigned(1)?, 0),
            CallOp::Fsync | CallOp::Fdatasync | CallOp::Fsyncdir => (0, 0),
            _ => (unsigned(2)?, unsigned(3)?),
        };
        let keeps = mode.contains("KEEP_SIZE");
        if op == CallOp::Zero && keeps {
            made.flags.push(CallFlag::KeepSize);
        }
        if call.result == 0 {
            let size = self.sizes.entry(file).or_default();
            let (at, len) = (made.offset, made.len);
            match op {
                CallOp::Truncate => *size = at,
                CallOp::Allocate | CallOp::Zero if !keeps => {
                    *size = at.saturating_add(len).max(*size);
                }
                CallOp::Collapse => *size = size.saturating_sub(len),
                CallOp::Insert => *size = size.saturating_add(len),
                _ => {}
            }
        }
        build.add(made);
        Ok(())
    }

    fn moved_bytes(
        &mut self,
        process: u32,
        call: &StraceCall,
        build: &mut TraceBuild,
    ) -> ImportResult {
        let number = |n: usize| call.arguments.get(n).and_then(|word| number(word));
        let known = self.description(process, number(0))?.clone();
        let OpenDescription { file, handle, is_folder, appends, position } = known;
        if is_folder {
            return Err(LeftOut::Refused);
        }
        let size = self.sizes.get(&file).copied().unwrap_or(0);
        let reads = call.name.contains("read");
        let bytes = u64::try_from(call.result).unwrap_or(0);
        let offset_at = match call.name.starts_with('p') {
            // -1 of preadv2 and pwritev2: where the descriptor stands.
            true => Some(number(3).ok_or(LeftOut::Elsewhere)?).filter(|at| *at != -1),
            false => None,
        };
        // As Linux has it, O_APPEND counts more than an offset.
        let (offset, goes_on) = match offset_at {
            _ if !reads && appends => (size, offset_at.is_none()),
            Some(at) => (u64::try_from(at).map_err(|_| LeftOut::Refused)?, false),
            None => (position, true),
        };
        // Of a vector strace says how much was moved, not how much was asked for.
        let asked =
            number(2).filter(|_| !call.name.contains('v')).and_then(|n| u64::try_from(n).ok());
        let len = asked.unwrap_or(bytes).max(bytes);
        let end = offset.saturating_add(bytes);
        if goes_on {
            self.description(process, number(0))?.position = end;
        }
        if reads && end > size {
            build.had(file, end);
        }
        self.sizes.insert(file, size.max(end));
        let op = if reads { CallOp::Read } else { CallOp::Write };
        let mut made = TraceCall::new(op, call.thread, call.start, call.end);
        (made.file, made.handle) = (Some(file), Some(handle));
        (made.offset, made.len, made.result) = (offset, len, call.result);
        let last = call.arguments.last().map_or("", String::as_str);
        if call.name == "pwritev2" {
            let all = [("RWF_DSYNC", CallFlag::Dsync), ("RWF_SYNC", CallFlag::Sync)];
            made.flags.extend(all.iter().filter(|(word, _)| last.contains(word)).map(|(_, f)| *f));
        }
        build.add(made);
        Ok(())
    }

    /// Bytes go from one file to another one without the program: as a read and a write.
    fn copied(&mut self, process: u32, call: &StraceCall, build: &mut TraceBuild) -> ImportResult {
        let word = |n: usize| call.arguments.get(n).map(String::as_str);
        let is_range = call.name == "copy_file_range";
        let (from, to) = if is_range { (0, 2) } else { (1, 0) };
        let ends = [
            (from, "read", if is_range { word(1) } else { word(2) }),
            (to, "write", if is_range { word(3) } else { None }),
        ];
        let mut any = Err(LeftOut::Elsewhere);
        for (place, name, offset) in ends {
            // `[4096]`, or `[4096] => [8192]`.
            let offset = offset.and_then(|text| text.trim_start_matches('[').split(']').next());
            let at = offset.and_then(number);
            let descriptor = word(place).ok_or(LeftOut::Elsewhere)?.to_owned();
            let mut arguments = vec![descriptor, String::new(), call.result.to_string()];
            arguments.extend(at.map(|at| at.to_string()));
            let name = if at.is_some() { format!("p{name}64") } else { name.to_owned() };
            let StraceCall { thread, result, start, end, .. } = *call;
            let half =
                StraceCall { thread, name, arguments, result, result_path: None, start, end };
            any = self.moved_bytes(process, &half, build).or(any);
        }
        any
    }
}

/// A call of a kind, which has failed as that of the text has.
pub(super) fn new(op: CallOp, call: &StraceCall) -> TraceCall {
    TraceCall {
        result: call.result.min(0),
        ..TraceCall::new(op, call.thread, call.start, call.end)
    }
}
