//! Open files: opening, reading, writing, mapping, running.

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::super::world::{Fault, StepResult, World, expand, mode, number, ok};

/// Largest buffer of a step.
const MAX: u64 = 64 << 20;

pub(super) fn call(w: &mut World, words: &[&str]) -> Option<StepResult> {
    Some(match words {
        ["open", handle, path, flags] => open(w, handle, path, flags, "0666"),
        ["open", handle, path, flags, bits] => open(w, handle, path, flags, bits),
        ["reopen", handle, old, flags] => reopen(w, handle, old, flags),
        ["close", handle] => match w.handles.remove(*handle) {
            Some(_) => Ok("ok".to_owned()),
            None => Ok("EBADF".to_owned()),
        },
        ["link-handle", handle, path] => link_handle(w, handle, path),
        ["read", handle, len] => read(w, handle, len, None),
        ["pread", handle, at, len] => read(w, handle, len, Some(at)),
        ["write", handle, text] => write(w, handle, None, expand(text).as_bytes()),
        ["pwrite", handle, at, text] => write(w, handle, Some(at), expand(text).as_bytes()),
        ["direct", what, handle, at, len, shift] => direct(w, what, handle, at, len, shift),
        ["fsync", handle] => w.handle(handle).and_then(|f| ok(rustix::fs::fsync(f))),
        ["fdatasync", handle] => w.handle(handle).and_then(|f| ok(rustix::fs::fdatasync(f))),
        ["execute", path] => execute(w, path),
        ["execute-long", path] => execute_long(w, path),
        _ => return None,
    })
}

fn flags_of(text: &str) -> Result<OFlags, Fault> {
    let mut all = OFlags::CLOEXEC;
    for flag in text.split(',') {
        all |= match flag {
            "r" => OFlags::RDONLY,
            "w" => OFlags::WRONLY,
            "rw" => OFlags::RDWR,
            "creat" => OFlags::CREATE,
            "excl" => OFlags::EXCL,
            "trunc" => OFlags::TRUNC,
            "append" => OFlags::APPEND,
            "nofollow" => OFlags::NOFOLLOW,
            "directory" => OFlags::DIRECTORY,
            "nonblock" => OFlags::NONBLOCK,
            "direct" => OFlags::DIRECT,
            "sync" => OFlags::SYNC,
            "dsync" => crate::raw::DSYNC,
            "noatime" => OFlags::NOATIME,
            "path" => OFlags::PATH,
            "tmpfile" => OFlags::TMPFILE,
            _ => return Err(Fault::Script(format!("no flag '{flag}'"))),
        };
    }
    Ok(all)
}

fn open(w: &mut World, handle: &str, path: &str, flags: &str, bits: &str) -> StepResult {
    w.handles.remove(handle);
    let file = rustix::fs::open(w.path(path), flags_of(flags)?, mode(bits)?)?;
    w.handles.insert(handle.to_owned(), file);
    Ok("ok".to_owned())
}

/// Opens the file of a handle once more, as one does with a file that has lost its name.
fn reopen(w: &mut World, handle: &str, old: &str, flags: &str) -> StepResult {
    let path = format!("/proc/self/fd/{}", w.handle(old)?.as_raw_fd());
    let file = rustix::fs::open(path, flags_of(flags)?, Mode::empty())?;
    w.handles.insert(handle.to_owned(), file);
    Ok("ok".to_owned())
}

fn link_handle(w: &World, handle: &str, path: &str) -> StepResult {
    let old = format!("/proc/self/fd/{}", w.handle(handle)?.as_raw_fd());
    ok(rustix::fs::linkat(CWD, old, CWD, w.path(path), AtFlags::SYMLINK_FOLLOW))
}

fn len_of(word: &str) -> Result<usize, Fault> {
    let len = number(word)?;
    if len > MAX {
        return Err(Fault::Script(format!("{len} bytes are too many for a step")));
    }
    Ok(len as usize)
}

fn read(w: &World, handle: &str, len: &str, at: Option<&str>) -> StepResult {
    let file: &OwnedFd = w.handle(handle)?;
    let mut bytes = vec![0; len_of(len)?];
    let n = match at {
        Some(at) => rustix::io::pread(file, &mut bytes[..], number(at)?)?,
        None => rustix::io::read(file, &mut bytes[..])?,
    };
    Ok(runs(&bytes[..n]))
}

fn write(w: &World, handle: &str, at: Option<&str>, bytes: &[u8]) -> StepResult {
    let file = w.handle(handle)?;
    let n = match at {
        Some(at) => rustix::io::pwrite(file, bytes, number(at)?)?,
        None => rustix::io::write(file, bytes)?,
    };
    Ok(n.to_string())
}

/// O_DIRECT with a buffer that is `shift` bytes off the alignment.
fn direct(w: &World, what: &str, handle: &str, at: &str, len: &str, shift: &str) -> StepResult {
    const ALIGN: usize = 4096;
    let (len, shift) = (len_of(len)?, len_of(shift)?);
    let mut buffer = vec![b'd'; len + shift + ALIGN];
    let start = buffer.as_ptr().align_offset(ALIGN) + shift;
    let bytes = &mut buffer[start..start + len];
    let file = w.handle(handle)?;
    match what {
        "read" => {
            let n = rustix::io::pread(file, &mut *bytes, number(at)?)?;
            Ok(runs(&bytes[..n]))
        }
        "write" => Ok(rustix::io::pwrite(file, &*bytes, number(at)?)?.to_string()),
        _ => Err(Fault::Script(format!("direct '{what}'"))),
    }
}

/// Runs a copy of true(1) of this name.
fn execute(w: &World, path: &str) -> StepResult {
    let status = start(w, Command::new(w.path(path)))?.wait()?;
    Ok(status.code().map_or_else(|| "killed".to_owned(), |c| format!("exit {c}")))
}

/// Starts a copy of sleep(1) of this name and leaves it running.
fn execute_long(w: &mut World, path: &str) -> StepResult {
    let mut command = Command::new(w.path(path));
    command.arg("1000");
    let child = start(w, command)?;
    w.children.push(child);
    Ok("ok".to_owned())
}

/// Starts a program. Another thread of this process that starts one of its own takes a copy of
/// every open file along, for the moment before its exec closes them: a file that was just written
/// and closed here is then still "busy". It is waited for, unless the case itself has files open.
fn start(w: &World, mut command: Command) -> std::io::Result<Child> {
    const PATIENCE: Duration = Duration::from_secs(20);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    loop {
        match command.spawn() {
            Err(e)
                if e.kind() == ErrorKind::ExecutableFileBusy
                    && w.handles.is_empty()
                    && begun.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// Bytes in short: short text as it is, else runs of the same byte.
pub(super) fn runs(bytes: &[u8]) -> String {
    if bytes.len() <= 40 && bytes.iter().all(u8::is_ascii_graphic) {
        return format!("'{}'", String::from_utf8_lossy(bytes));
    }
    let shown = |b: u8| {
        if b.is_ascii_graphic() { (b as char).to_string() } else { format!("\\{b}") }
    };
    let mut text = Vec::new();
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let len = rest.iter().take_while(|b| *b == first).count();
        text.push(format!("{}*{len}", shown(*first)));
        rest = &rest[len..];
        if text.len() == 20 {
            text.push(format!("and {} more", rest.len()));
            break;
        }
    }
    format!("{} bytes: {}", bytes.len(), text.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_short() {
        assert_eq!(runs(b"abc"), "'abc'");
        assert_eq!(runs(&[0, 0, 65]), "3 bytes: \\0*2 A*1");
        assert_eq!(runs(b""), "''");
    }
}
