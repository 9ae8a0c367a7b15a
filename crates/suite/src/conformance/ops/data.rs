//! Sizes, holes, space, maps and copies.

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::mm::{MapFlags, ProtFlags};

use super::super::world::{Fault, StepResult, World, expand, number, ok};
use super::open::runs;
use crate::raw::MappedFile;

pub(super) fn call(w: &mut World, words: &[&str]) -> Option<StepResult> {
    Some(match words {
        ["truncate", path, size] => truncate(w, path, size),
        ["ftruncate", handle, size] => {
            w.handle(handle).and_then(|f| ok(rustix::fs::ftruncate(f, number(size)?)))
        }
        ["fallocate", handle, mode, at, len] => fallocate(w, handle, mode, at, len),
        ["seek", handle, whence, at] => seek(w, handle, whence, at),
        ["copy", from, at, to, to_at, len] => copy(w, from, at, to, to_at, len),
        ["mmap", handle, map, at, len, kind] => map_file(w, handle, map, at, len, kind),
        ["peek", map, at, len] => peek(w, map, at, len),
        ["poke", map, at, text] => poke(w, map, at, text),
        ["msync", map] => match w.maps.get(*map) {
            Some(map) => ok(map.sync()),
            None => Err(no_map()),
        },
        ["munmap", map] => match w.maps.remove(*map) {
            Some(_) => Ok("ok".to_owned()),
            None => Err(no_map()),
        },
        ["content", path] => std::fs::read(w.path(path)).map(|b| runs(&b)).map_err(Fault::from),
        _ => return None,
    })
}

fn no_map() -> Fault {
    Fault::Errno(rustix::io::Errno::FAULT)
}

/// `truncate`, for which rustix has no name: an open would need the right to read as well.
fn truncate(w: &World, path: &str, size: &str) -> StepResult {
    let path = w.path(path);
    ok(crate::raw::truncate(&path, number(size)?))
}

fn fallocate(w: &World, handle: &str, mode: &str, at: &str, len: &str) -> StepResult {
    let mut flags = FallocateFlags::empty();
    for word in mode.split(',') {
        flags |= match word {
            "allocate" => FallocateFlags::empty(),
            "keep" => FallocateFlags::KEEP_SIZE,
            "punch" => FallocateFlags::PUNCH_HOLE,
            "zero" => FallocateFlags::ZERO_RANGE,
            "collapse" => FallocateFlags::COLLAPSE_RANGE,
            "insert" => FallocateFlags::INSERT_RANGE,
            "unshare" => FallocateFlags::UNSHARE_RANGE,
            _ => return Err(Fault::Script(format!("no mode '{word}'"))),
        };
    }
    let (at, len) = (number(at)?, number(len)?);
    w.handle(handle).and_then(|f| ok(rustix::fs::fallocate(f, flags, at, len)))
}

fn seek(w: &World, handle: &str, whence: &str, at: &str) -> StepResult {
    let signed: i64 = at.parse().unwrap_or(0);
    let to = match whence {
        "set" => SeekFrom::Start(number(at)?),
        "cur" => SeekFrom::Current(signed),
        "end" => SeekFrom::End(signed),
        "data" => SeekFrom::Data(number(at)?),
        "hole" => SeekFrom::Hole(number(at)?),
        _ => return Err(Fault::Script(format!("seek '{whence}'"))),
    };
    Ok(rustix::fs::seek(w.handle(handle)?, to)?.to_string())
}

fn copy(w: &World, from: &str, at: &str, to: &str, to_at: &str, len: &str) -> StepResult {
    let (mut at, mut to_at) = (number(at)?, number(to_at)?);
    let (from, to) = (w.handle(from)?, w.handle(to)?);
    let len = number(len)? as usize;
    let n = rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut to_at), len)?;
    Ok(n.to_string())
}

fn map_file(w: &mut World, handle: &str, map: &str, at: &str, len: &str, kind: &str) -> StepResult {
    let both = ProtFlags::READ | ProtFlags::WRITE;
    let (protection, flags) = match kind {
        "shared" => (both, MapFlags::SHARED),
        "shared-read" => (ProtFlags::READ, MapFlags::SHARED),
        "private" => (both, MapFlags::PRIVATE),
        "private-read" => (ProtFlags::READ, MapFlags::PRIVATE),
        _ => return Err(Fault::Script(format!("mmap '{kind}'"))),
    };
    use std::os::fd::AsFd;
    let file = w.handle(handle)?.as_fd();
    let new = MappedFile::new(file, number(at)?, number(len)? as usize, protection, flags)?;
    w.maps.insert(map.to_owned(), new);
    Ok("ok".to_owned())
}

fn peek(w: &World, map: &str, at: &str, len: &str) -> StepResult {
    let map = w.maps.get(map).ok_or_else(no_map)?;
    let mut bytes = vec![0; number(len)? as usize];
    map.read(number(at)? as usize, &mut bytes);
    Ok(runs(&bytes))
}

fn poke(w: &mut World, map: &str, at: &str, text: &str) -> StepResult {
    let map = w.maps.get_mut(map).ok_or_else(no_map)?;
    map.write(number(at)? as usize, expand(text).as_bytes());
    Ok("ok".to_owned())
}
