//! What system calls of strace's text are to names: opening, making, moving, removing.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::build::TraceBuild;
use super::errno::{EEXIST, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY};
use super::names::NamePath;
use super::plain;
use super::processes::{ImportResult, LeftOut, OpenDescription, Processes};
use super::strace_calls::new;
use super::strace_line::{StraceCall, path_of, unquoted};
use crate::format::{CallFlag, CallOp, FileKind, TraceCall, name_text};
use crate::reader::{NAME_MAX, PATH_MAX};

/// How a file is opened.
struct OpenHow<'c> {
    flags: &'c str,
}

impl OpenHow<'_> {
    fn has(&self, flag: &str) -> bool {
        self.flags.split(['|', ',', '=', '{', '}', ' ']).any(|word| word == flag)
    }

    fn flags(&self) -> Vec<CallFlag> {
        let both = self.has("O_RDWR");
        let all = [
            (both || self.has("O_RDONLY"), CallFlag::Read),
            (both || self.has("O_WRONLY"), CallFlag::Write),
            (self.has("O_APPEND"), CallFlag::Append),
            (self.has("O_TRUNC"), CallFlag::Truncate),
            (self.has("O_EXCL"), CallFlag::Exclusive),
            (self.has("O_DIRECT"), CallFlag::Direct),
            (self.has("O_SYNC"), CallFlag::Sync),
            (self.has("O_DSYNC"), CallFlag::Dsync),
        ];
        all.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect()
    }
}

impl Processes {
    /// The names from the folder that counts to a path.
    fn names_of(&self, path: &Path) -> ImportResult<NamePath> {
        let path = plain(path);
        let below = path.strip_prefix(&self.folder).map_err(|_| LeftOut::Elsewhere)?;
        let names = below.components().map(|part| match part {
            Component::Normal(name) => {
                let bytes = name.as_bytes();
                let fits = bytes.len() <= NAME_MAX && !bytes.contains(&0);
                if fits { Ok(name_text(bytes)) } else { Err(LeftOut::NoPath) }
            }
            _ => Err(LeftOut::Elsewhere),
        });
        names.collect()
    }

    /// The names from the folder that counts, of a word of text that is meant from a folder's
    /// descriptor (from where a process works, if there is none). `follows`: also the last name, if
    /// it is a symbolic link.
    fn below(
        &self,
        process: u32,
        (dir, word): (Option<&str>, Option<&str>),
        (follows, build): (bool, &TraceBuild),
    ) -> ImportResult<NamePath> {
        let text = word.and_then(unquoted).ok_or(LeftOut::Elsewhere)?;
        if text.is_empty() {
            return Err(LeftOut::Elsewhere);
        }
        let own = PathBuf::from(OsString::from_vec(text));
        let dir = dir.and_then(path_of).map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        let whole = dir.as_deref().unwrap_or_else(|| self.folder_of(process)).join(&own);
        if own.as_os_str().len() > PATH_MAX || whole.as_os_str().len() > 2 * PATH_MAX {
            return Err(LeftOut::NoPath);
        }
        let names = self.names_of(&whole)?;
        let linked = build.followed(names, follows, |folder, target| {
            let mut path = self.folder.clone();
            for name in folder {
                path.push(OsString::from_vec(crate::format::name_bytes(name)?));
            }
            path.push(OsString::from_vec(target.to_vec()));
            self.names_of(&path).ok()
        });
        linked.ok_or(LeftOut::Elsewhere)
    }

    pub(super) fn opened(
        &mut self,
        process: u32,
        call: &StraceCall,
        build: &mut TraceBuild,
    ) -> ImportResult {
        let word = |n: usize| call.arguments.get(n).map(String::as_str);
        let (dir, path, flags) = match call.name.as_str() {
            "openat" | "openat2" => (word(0), word(1), word(2)),
            "creat" => (None, word(0), Some("O_WRONLY|O_CREAT|O_TRUNC")),
            _ => (None, word(0), word(1)),
        };
        let how = OpenHow { flags: flags.ok_or(LeftOut::Elsewhere)? };
        let fd = usize::try_from(call.result).ok();
        if let Some(fd) = fd {
            // What was there was closed unseen.
            self.closes(process, fd);
        }
        let is_exclusive = how.has("O_CREAT") && how.has("O_EXCL");
        let follows = !is_exclusive && !how.has("O_NOFOLLOW");
        let path = match &call.result_path {
            // Where it leads to, whatever links are on the way.
            Some(path) if fd.is_some() => {
                self.names_of(Path::new(std::ffi::OsStr::from_bytes(path)))?
            }
            _ => self.below(process, (dir, path), (follows, build))?,
        };
        if how.has("O_PATH") {
            return Err(LeftOut::PathAlone);
        }
        let Some(fd) = fd else { return refused(&path, is_exclusive, (&how, call), build) };
        let known = build.known(&path);
        let is_folder = how.has("O_DIRECTORY") || known.is_some_and(|file| build.is_folder(file));
        let mut made = TraceCall { flags: how.flags(), ..new(CallOp::Open, call) };
        let file = if how.has("O_TMPFILE") {
            made.op = CallOp::Tmpfile;
            build.new_file()
        } else if how.has("O_CREAT") && (known.is_none() || is_exclusive) {
            let (dir, name) = build.place(&path).ok_or(LeftOut::Elsewhere)?;
            (made.op, made.dir, made.name) = (CallOp::Create, Some(dir), name.clone());
            let file = build.new_file();
            build.set((dir, name), Some(file));
            file
        } else {
            build.file(&path, if is_folder { FileKind::Folder } else { FileKind::Regular })
        };
        if made.op != CallOp::Open || how.has("O_TRUNC") {
            self.sizes.insert(file, 0);
        }
        let is_folder = is_folder && made.op == CallOp::Open;
        let handle = build.new_handle();
        let appends = how.has("O_APPEND");
        let description = OpenDescription { file, handle, is_folder, appends, position: 0 };
        self.opens(process, fd, description, how.has("O_CLOEXEC"));
        (made.file, made.handle) = (Some(file), Some(handle));
        if is_folder {
            return Err(LeftOut::Elsewhere);
        }
        build.add(made);
        Ok(())
    }

    pub(super) fn named(
        &mut self,
        process: u32,
        call: &StraceCall,
        build: &mut TraceBuild,
    ) -> ImportResult {
        let word = |n: usize| call.arguments.get(n).map(String::as_str);
        let of = |dir: Option<usize>, n: usize, follows: bool, build: &TraceBuild| {
            self.below(process, (dir.and_then(word), word(n)), (follows, build))
        };
        let has = |flag: &str| call.arguments.iter().any(|word| word.contains(flag));
        match call.name.as_str() {
            "unlink" => removed(&of(None, 0, false, build)?, CallOp::Unlink, call, build),
            "rmdir" => removed(&of(None, 0, false, build)?, CallOp::Rmdir, call, build),
            "unlinkat" => {
                let op = if has("AT_REMOVEDIR") { CallOp::Rmdir } else { CallOp::Unlink };
                removed(&of(Some(0), 1, false, build)?, op, call, build)
            }
            "mkdir" => made(&of(None, 0, false, build)?, None, call, build),
            "mkdirat" => made(&of(Some(0), 1, false, build)?, None, call, build),
            "symlink" => made(&of(None, 1, false, build)?, Some(target(call)?), call, build),
            "symlinkat" => made(&of(Some(1), 2, false, build)?, Some(target(call)?), call, build),
            "truncate" => {
                let size = word(1).and_then(super::strace_line::number);
                let size = size.and_then(|n| u64::try_from(n).ok()).ok_or(LeftOut::Refused)?;
                let path = of(None, 0, true, build)?;
                let file = truncated(&path, size, call, build)?;
                if let Some(file) = file {
                    self.sizes.insert(file, size);
                }
                Ok(())
            }
            "rename" | "link" => {
                let (from, to) = (of(None, 0, false, build)?, of(None, 1, false, build)?);
                moved((&from, &to), call, build)
            }
            "renameat" | "renameat2" | "linkat" => {
                let follows = has("AT_SYMLINK_FOLLOW");
                let (from, to) = (of(Some(0), 1, follows, build)?, of(Some(2), 3, false, build)?);
                moved((&from, &to), call, build)
            }
            _ => Err(LeftOut::Elsewhere),
        }
    }
}

/// What a symbolic link is to lead to.
fn target(call: &StraceCall) -> ImportResult<Vec<u8>> {
    let bytes = call.arguments.first().and_then(|word| unquoted(word));
    let bytes = bytes.ok_or(LeftOut::Elsewhere)?;
    let fits = !bytes.is_empty() && bytes.len() < PATH_MAX && !bytes.contains(&0);
    if fits { Ok(bytes) } else { Err(LeftOut::NoPath) }
}

/// An open that failed: a lookup in vain, or a file that was there.
fn refused(
    path: &NamePath,
    is_exclusive: bool,
    (how, call): (&OpenHow<'_>, &StraceCall),
    build: &mut TraceBuild,
) -> ImportResult {
    match -call.result {
        ENOENT => build.found_nothing(path, new(CallOp::Lookup, call), true),
        EEXIST if is_exclusive => {
            let file = build.known(path).unwrap_or_else(|| build.file(path, FileKind::Regular));
            let (dir, name) = build.place(path).ok_or(LeftOut::Elsewhere)?;
            let call = TraceCall { flags: how.flags(), ..new(CallOp::Create, call) };
            build.add(TraceCall { file: Some(file), dir: Some(dir), name, ..call });
        }
        _ => return Err(LeftOut::Refused),
    }
    Ok(())
}

/// Whether a call on a name is made again: it succeeded, or failed by what is there.
fn is_by_names(call: &StraceCall) -> ImportResult {
    match -call.result {
        EEXIST | ENOTEMPTY | EISDIR | ENOTDIR => Ok(()),
        _ if call.result >= 0 => Ok(()),
        _ => Err(LeftOut::Refused),
    }
}

fn removed(path: &NamePath, op: CallOp, call: &StraceCall, build: &mut TraceBuild) -> ImportResult {
    let mut removes = new(op, call);
    if call.result == -ENOENT {
        build.found_nothing(path, removes, true);
        return Ok(());
    }
    is_by_names(call)?;
    // What cannot be removed this way is the other kind.
    let is_folder = (op == CallOp::Rmdir) == !matches!(-call.result, EISDIR | ENOTDIR);
    let kind = if is_folder { FileKind::Folder } else { FileKind::Regular };
    let file = build.known(path).unwrap_or_else(|| build.file(path, kind));
    let place = build.place(path).ok_or(LeftOut::Elsewhere)?;
    if call.result >= 0 {
        build.set(place.clone(), None);
    }
    (removes.file, removes.dir, removes.name) = (Some(file), Some(place.0), place.1);
    build.add(removes);
    Ok(())
}

/// A folder or a symbolic link is made.
fn made(
    path: &NamePath,
    target: Option<Vec<u8>>,
    call: &StraceCall,
    build: &mut TraceBuild,
) -> ImportResult {
    let op = if target.is_some() { CallOp::Symlink } else { CallOp::Mkdir };
    let mut makes = new(op, call);
    makes.to = target.as_deref().map(name_text).unwrap_or_default();
    if call.result == -ENOENT {
        build.found_nothing(path, makes, true);
        return Ok(());
    }
    is_by_names(call)?;
    if call.result < 0 && build.known(path).is_none() {
        build.file(path, FileKind::Folder);
    }
    let place = build.place(path).ok_or(LeftOut::Elsewhere)?;
    if call.result >= 0 {
        let file = match target {
            Some(target) => build.new_link(target),
            None => build.new_folder(),
        };
        makes.file = Some(file);
        build.set(place.clone(), Some(file));
    }
    (makes.dir, makes.name) = (Some(place.0), place.1);
    build.add(makes);
    Ok(())
}

fn truncated(
    path: &NamePath,
    size: u64,
    call: &StraceCall,
    build: &mut TraceBuild,
) -> ImportResult<Option<u64>> {
    if call.result == -ENOENT {
        build.found_nothing(path, new(CallOp::Truncate, call), false);
        return Ok(None);
    }
    if call.result < 0 {
        return Err(LeftOut::Refused);
    }
    let file = Some(build.file(path, FileKind::Regular));
    build.add(TraceCall { file, offset: size, ..new(CallOp::Truncate, call) });
    Ok(file)
}

/// A rename, a link, or two names that change places.
fn moved(
    (from, to): (&NamePath, &NamePath),
    call: &StraceCall,
    build: &mut TraceBuild,
) -> ImportResult {
    let has = |flag: &str| call.arguments.iter().any(|word| word.contains(flag));
    let op = match call.name.starts_with("link") {
        true => CallOp::Link,
        false if has("RENAME_EXCHANGE") => CallOp::Exchange,
        false => CallOp::Rename,
    };
    let mut moves = new(op, call);
    if has("RENAME_NOREPLACE") {
        moves.flags.push(CallFlag::NoReplace);
    }
    if call.result == -ENOENT {
        // The first name is not there; or it is, and the folder of the second one is not.
        let missing = if build.known(from).is_some() { to } else { from };
        build.found_nothing(missing, moves, false);
        return Ok(());
    }
    is_by_names(call)?;
    let file = Some(build.file(from, FileKind::Regular));
    if op == CallOp::Exchange || call.result < 0 {
        let kind = if call.result == -ENOTEMPTY { FileKind::Folder } else { FileKind::Regular };
        build.known(to).unwrap_or_else(|| build.file(to, kind));
    }
    let own = build.place(from).ok_or(LeftOut::Elsewhere)?;
    let other = build.place(to).ok_or(LeftOut::Elsewhere)?;
    let there = build.known(to);
    moves.file = file;
    if op != CallOp::Link {
        (moves.dir, moves.name) = (Some(own.0), own.1.clone());
    }
    (moves.to_dir, moves.to) = (Some(other.0), other.1.clone());
    // Of two names of one file a rename leaves both.
    if call.result >= 0 && there != file {
        build.set(other, file);
        match op {
            CallOp::Rename => build.set(own, None),
            CallOp::Exchange => build.set(own, there),
            _ => {}
        }
    }
    build.add(moves);
    Ok(())
}
