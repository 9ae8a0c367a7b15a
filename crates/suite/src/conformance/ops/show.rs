//! Looking: stat, access, statvfs.

use rustix::fs::{Access, AtFlags, CWD, FileType, Stat};

use super::super::world::{Fault, StepResult, World, ok};

pub(super) fn call(w: &mut World, words: &[&str]) -> Option<StepResult> {
    Some(match words {
        ["stat", path, fields] => match rustix::fs::stat(w.path(path)) {
            Ok(stat) => show(&stat, fields),
            Err(errno) => Err(errno.into()),
        },
        ["lstat", path, fields] => match rustix::fs::lstat(w.path(path)) {
            Ok(stat) => show(&stat, fields),
            Err(errno) => Err(errno.into()),
        },
        ["fstat", handle, fields] => {
            w.handle(handle).and_then(|f| show(&rustix::fs::fstat(f)?, fields))
        }
        ["same", a, b] => same(w, a, b),
        ["access", path, rights] => access(w, path, rights, AtFlags::empty()),
        ["eaccess", path, rights] => access(w, path, rights, AtFlags::EACCESS),
        ["statvfs", path, fields] => statvfs(w, path, fields),
        ["blocks", path, unit] => blocks(w, path, unit),
        _ => return None,
    })
}

fn show(stat: &Stat, fields: &str) -> StepResult {
    let mut shown = Vec::new();
    for field in fields.split(',') {
        shown.push(match field {
            "type" => kind(FileType::from_raw_mode(stat.st_mode)).to_owned(),
            "mode" => format!("{:04o}", stat.st_mode & 0o7777),
            "nlink" => stat.st_nlink.to_string(),
            "uid" => stat.st_uid.to_string(),
            "gid" => stat.st_gid.to_string(),
            "size" => stat.st_size.to_string(),
            "blocks" => stat.st_blocks.to_string(),
            "blksize" => stat.st_blksize.to_string(),
            "atime" => time(stat.st_atime, stat.st_atime_nsec),
            "mtime" => time(stat.st_mtime, stat.st_mtime_nsec),
            "rdev" => {
                format!("{}:{}", rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev))
            }
            _ => return Err(Fault::Script(format!("no field '{field}'"))),
        });
    }
    Ok(shown.join(" "))
}

/// A time, or `now` if it is of this day: no two runs have the same.
fn time(seconds: i64, nanos: u64) -> String {
    const DAY: u64 = 24 * 3600;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    match seconds.abs_diff(now) < DAY {
        true => "now".to_owned(),
        false => format!("{seconds}.{nanos:09}"),
    }
}

fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "dir",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "char",
        FileType::BlockDevice => "block",
        FileType::Unknown => "unknown",
    }
}

/// Whether two names mean one file.
fn same(w: &World, a: &str, b: &str) -> StepResult {
    let (a, b) = (rustix::fs::lstat(w.path(a))?, rustix::fs::lstat(w.path(b))?);
    let is_same = a.st_ino == b.st_ino && a.st_dev == b.st_dev;
    Ok(if is_same { "same" } else { "different" }.to_owned())
}

fn access(w: &World, path: &str, rights: &str, flags: AtFlags) -> StepResult {
    let mut all = Access::EXISTS;
    for (letter, right) in [('r', Access::READ_OK), ('w', Access::WRITE_OK), ('x', Access::EXEC_OK)]
    {
        if rights.contains(letter) {
            all |= right;
        }
    }
    ok(rustix::fs::accessat(CWD, w.path(path), all, flags))
}

fn statvfs(w: &World, path: &str, fields: &str) -> StepResult {
    let stat = rustix::fs::statvfs(w.path(path))?;
    let mut shown = Vec::new();
    for field in fields.split(',') {
        shown.push(match field {
            "bsize" => stat.f_bsize,
            "frsize" => stat.f_frsize,
            "blocks" => stat.f_blocks,
            "files" => stat.f_files,
            "namemax" => stat.f_namemax,
            // Exact counts depend on what the file system has laid out already.
            "sane" => u64::from(
                stat.f_bavail <= stat.f_bfree
                    && stat.f_bfree <= stat.f_blocks
                    && stat.f_ffree <= stat.f_files,
            ),
            _ => return Err(Fault::Script(format!("no field '{field}'"))),
        });
    }
    Ok(shown.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
}

/// Space that a file uses, in units: rounded, as it includes blocks of the mapping.
fn blocks(w: &World, path: &str, unit: &str) -> StepResult {
    let unit = super::super::world::number(unit)?;
    let bytes = rustix::fs::lstat(w.path(path))?.st_blocks as u64 * 512;
    Ok((bytes / unit).to_string())
}
