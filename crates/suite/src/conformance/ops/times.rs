//! Modes, owners and times; and which times a call has moved.

use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::fs::{Gid, Uid};

use super::super::world::{Fault, StepResult, World, mode, number, ok};

/// Longer than the steps of the clock that files get their times from.
const TICK: Duration = Duration::from_millis(12);

pub(super) fn call(w: &mut World, words: &[&str]) -> Option<StepResult> {
    Some(match words {
        ["chmod", path, bits] => {
            let path = w.path(path);
            mode(bits).and_then(|m| ok(rustix::fs::chmod(&path, m)))
        }
        ["fchmod", handle, bits] => {
            w.handle(handle).and_then(|f| ok(rustix::fs::fchmod(f, mode(bits)?)))
        }
        ["chown", path, uid, gid] => chown(w, path, uid, gid, AtFlags::empty()),
        ["lchown", path, uid, gid] => chown(w, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
        ["fchown", handle, uid, gid] => fchown(w, handle, uid, gid),
        ["utimens", path, atime, mtime] => utimens(w, path, atime, mtime, AtFlags::empty()),
        ["lutimens", path, atime, mtime] => {
            utimens(w, path, atime, mtime, AtFlags::SYMLINK_NOFOLLOW)
        }
        ["remember", paths @ ..] => remember(w, paths),
        ["changed", path] => changed(w, path),
        ["order", path, first, second] => order(w, path, first, second),
        _ => return None,
    })
}

fn owner(uid: &str, gid: &str) -> Result<(Option<Uid>, Option<Gid>), Fault> {
    let id = |word: &str| match word {
        "-" => Ok(None),
        _ => match u32::try_from(number(word)?) {
            Ok(id) => Ok(Some(id)),
            Err(_) => Err(Fault::Script(format!("'{word}' is no user or group"))),
        },
    };
    Ok((id(uid)?.map(Uid::from_raw), id(gid)?.map(Gid::from_raw)))
}

fn chown(w: &World, path: &str, uid: &str, gid: &str, flags: AtFlags) -> StepResult {
    let (uid, gid) = owner(uid, gid)?;
    ok(rustix::fs::chownat(CWD, w.path(path), uid, gid, flags))
}

fn fchown(w: &World, handle: &str, uid: &str, gid: &str) -> StepResult {
    let (uid, gid) = owner(uid, gid)?;
    ok(rustix::fs::fchown(w.handle(handle)?, uid, gid))
}

/// `now`, `omit`, or SECONDS[.NANOSECONDS], the seconds with a sign.
fn time(word: &str) -> Result<Timespec, Fault> {
    let fault = || Fault::Script(format!("'{word}' is no time"));
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    Ok(match word {
        "now" => special(UTIME_NOW),
        "omit" => special(UTIME_OMIT),
        _ => {
            let (seconds, nanos) = word.split_once('.').unwrap_or((word, "0"));
            let tv_sec = seconds.parse().map_err(|_| fault())?;
            Timespec { tv_sec, tv_nsec: nanos.parse().map_err(|_| fault())? }
        }
    })
}

fn utimens(w: &World, path: &str, atime: &str, mtime: &str, flags: AtFlags) -> StepResult {
    let times = Timestamps { last_access: time(atime)?, last_modification: time(mtime)? };
    ok(rustix::fs::utimensat(CWD, w.path(path), &times, flags))
}

/// Notes the times of files, and waits until the clock has moved on.
fn remember(w: &mut World, paths: &[&str]) -> StepResult {
    for path in paths {
        let stat = rustix::fs::lstat(w.path(path))?;
        w.remembered.insert((*path).to_owned(), stat);
    }
    std::thread::sleep(TICK);
    Ok("ok".to_owned())
}

fn times_of(stat: &Stat) -> [(&'static str, (i64, i64)); 3] {
    let nanos = |n: u64| n as i64;
    [
        ("atime", (stat.st_atime, nanos(stat.st_atime_nsec))),
        ("mtime", (stat.st_mtime, nanos(stat.st_mtime_nsec))),
        ("ctime", (stat.st_ctime, nanos(stat.st_ctime_nsec))),
    ]
}

/// Which times of a file are others than were remembered.
fn changed(w: &World, path: &str) -> StepResult {
    let now = rustix::fs::lstat(w.path(path))?;
    let Some(before) = w.remembered.get(path) else {
        return Err(Fault::Script(format!("'{path}' is not remembered")));
    };
    let pairs = times_of(before).into_iter().zip(times_of(&now));
    let moved = pairs.filter(|((_, before), (_, now))| before != now).map(|((name, _), _)| name);
    let moved: Vec<&str> = moved.collect();
    Ok(if moved.is_empty() { "nothing".to_owned() } else { moved.join(" ") })
}

/// How two times of a file stand to each other.
fn order(w: &World, path: &str, first: &str, second: &str) -> StepResult {
    let stat = rustix::fs::lstat(w.path(path))?;
    let time = |name: &str| {
        let found = times_of(&stat).into_iter().find(|(n, _)| *n == name);
        found.map(|(_, t)| t).ok_or_else(|| Fault::Script(format!("no time '{name}'")))
    };
    let order = match time(first)?.cmp(&time(second)?) {
        std::cmp::Ordering::Less => "before",
        std::cmp::Ordering::Equal => "equal",
        std::cmp::Ordering::Greater => "after",
    };
    Ok(order.to_owned())
}
