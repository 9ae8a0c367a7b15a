//! Names: making, linking, renaming and removing them.

use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags};

use super::super::world::{Fault, StepResult, World, expand, expand_path, mode, number, ok};

pub(super) fn call(w: &mut World, words: &[&str]) -> Option<StepResult> {
    Some(match words {
        ["make", kind, name] => make(w, kind, name),
        ["umask", bits] => mode(bits).map(|m| {
            rustix::process::umask(m);
            "ok".to_owned()
        }),
        ["mkdir", path, bits] => {
            let path = w.path(path);
            mode(bits).and_then(|m| ok(rustix::fs::mkdir(&path, m)))
        }
        ["rmdir", path] => ok(rustix::fs::rmdir(w.path(path))),
        ["unlink", path] => ok(rustix::fs::unlink(w.path(path))),
        ["link", old, new] => {
            ok(rustix::fs::linkat(CWD, w.path(old), CWD, w.path(new), AtFlags::empty()))
        }
        ["link-follow", old, new] => {
            ok(rustix::fs::linkat(CWD, w.path(old), CWD, w.path(new), AtFlags::SYMLINK_FOLLOW))
        }
        ["symlink", target, path] => ok(rustix::fs::symlink(expand_path(target), w.path(path))),
        ["readlink", path] => readlink(&w.path(path)),
        ["rename", old, new] => ok(rustix::fs::rename(w.path(old), w.path(new))),
        ["rename2", old, new, flags] => rename_with(w, old, new, flags),
        ["mknod", path, kind, bits, device] => mknod(w, path, kind, bits, device),
        ["bind", path] => bind(&w.path(path)),
        _ => return None,
    })
}

/// A thing of some kind, without a word about how.
fn make(w: &mut World, kind: &str, name: &str) -> StepResult {
    let path = w.path(name);
    match kind {
        "none" => {}
        "file" => std::fs::write(&path, format!("I am {name}"))?,
        "empty" => std::fs::write(&path, "")?,
        "dir" => std::fs::create_dir(&path)?,
        "fulldir" => {
            std::fs::create_dir(&path)?;
            std::fs::write(path.join("inside"), "x")?;
        }
        "symlink" => {
            std::fs::write(path.with_extension("target"), "target")?;
            let target = format!("{}.target", expand(name));
            rustix::fs::symlink(target, &path)?;
        }
        "dirlink" => {
            std::fs::create_dir(path.with_extension("target"))?;
            rustix::fs::symlink(format!("{}.target", expand(name)), &path)?;
        }
        "dangling" => rustix::fs::symlink("nowhere", &path)?,
        "loop" => rustix::fs::symlink(expand(name), &path)?,
        "fifo" => node(&path, FileType::Fifo, 0)?,
        "char" => node(&path, FileType::CharacterDevice, rustix::fs::makedev(1, 3))?,
        "block" => node(&path, FileType::BlockDevice, rustix::fs::makedev(7, 250))?,
        "socket" => return bind(&path),
        _ => return Err(Fault::Script(format!("cannot make '{kind}'"))),
    }
    Ok("ok".to_owned())
}

fn node(path: &Path, kind: FileType, device: u64) -> Result<(), Fault> {
    Ok(rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o644), device)?)
}

fn mknod(w: &World, path: &str, kind: &str, bits: &str, device: &str) -> StepResult {
    let kind = match kind {
        "file" => FileType::RegularFile,
        "dir" => FileType::Directory,
        "fifo" => FileType::Fifo,
        "socket" => FileType::Socket,
        "char" => FileType::CharacterDevice,
        "block" => FileType::BlockDevice,
        "symlink" => FileType::Symlink,
        _ => return Err(Fault::Script(format!("no kind '{kind}'"))),
    };
    let Some((major, minor)) = device.split_once(':') else {
        return Err(Fault::Script(format!("'{device}' is not MAJOR:MINOR")));
    };
    let part = |word| u32::try_from(number(word)?).map_err(|_| Fault::Script("too large".into()));
    let device = rustix::fs::makedev(part(major)?, part(minor)?);
    ok(rustix::fs::mknodat(CWD, w.path(path), kind, mode(bits)?, device))
}

fn bind(path: &Path) -> StepResult {
    // The socket goes; its name stays.
    drop(UnixListener::bind(path)?);
    Ok("ok".to_owned())
}

fn readlink(path: &Path) -> StepResult {
    let target = rustix::fs::readlink(path, Vec::new())?.into_bytes();
    let text = String::from_utf8_lossy(&target).into_owned();
    Ok(if text.len() > 60 { format!("{} bytes, {}...", text.len(), &text[..10]) } else { text })
}

fn rename_with(w: &World, old: &str, new: &str, flags: &str) -> StepResult {
    let mut all = RenameFlags::empty();
    for flag in flags.split(',') {
        all |= match flag {
            "noreplace" => RenameFlags::NOREPLACE,
            "exchange" => RenameFlags::EXCHANGE,
            "whiteout" => RenameFlags::WHITEOUT,
            _ => return Err(Fault::Script(format!("no flag '{flag}'"))),
        };
    }
    ok(rustix::fs::renameat_with(CWD, w.path(old), CWD, w.path(new), all))
}
