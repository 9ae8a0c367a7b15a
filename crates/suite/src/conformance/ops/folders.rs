//! Folders: their entries, places in them, many of them.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, RawDir, SeekFrom};

use super::super::world::{Fault, StepResult, World, number, ok};

/// Room for the entries that one call gives.
const BUFFER: usize = 4096;

pub(super) fn call(w: &mut World, words: &[&str]) -> Option<StepResult> {
    Some(match words {
        ["readdir", path] => readdir(w, path),
        ["count", path] => match std::fs::read_dir(w.path(path)) {
            Ok(entries) => Ok(entries.count().to_string()),
            Err(error) => Err(error.into()),
        },
        ["many", what, path, from, to] => many(w, what, path, from, to),
        ["next", handle] => w.handle(handle).and_then(|f| next(f).map(|n| n.len().to_string())),
        ["rest", handle] => rest(w, handle),
        ["tell", handle, place] => tell(w, handle, place),
        ["go", handle, place] => {
            let to = w.places.get(*place).copied().unwrap_or(0);
            w.handle(handle).and_then(|f| {
                rustix::fs::seek(f, SeekFrom::Start(to))?;
                Ok("ok".to_owned())
            })
        }
        ["install", program, path] => install(w, program, path),
        ["dirsync", path] => std::fs::File::open(w.path(path))
            .map_err(Fault::from)
            .and_then(|f| ok(rustix::fs::fsync(f))),
        _ => return None,
    })
}

/// Names and kinds in alphabetical order.
fn readdir(w: &World, path: &str) -> StepResult {
    use rustix::fs::OFlags;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(w.path(path), flags, rustix::fs::Mode::empty())?;
    let mut all = Vec::new();
    loop {
        let some = next(&folder)?;
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    all.sort();
    Ok(all.join(" "))
}

/// What one call gives: names with a sign for their kind.
fn next(folder: &OwnedFd) -> Result<Vec<String>, Fault> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let sign = match entry.file_type() {
            FileType::RegularFile => "",
            FileType::Directory => "/",
            FileType::Symlink => "@",
            FileType::Fifo => "|",
            FileType::Socket => "=",
            FileType::CharacterDevice => "%",
            FileType::BlockDevice => "#",
            FileType::Unknown => "?",
        };
        let name = entry.file_name().to_string_lossy();
        let name = if name.len() > 60 { format!("{} bytes", name.len()) } else { name.into() };
        names.push(format!("{name}{sign}"));
        if entries.is_buffer_empty() {
            break;
        }
    }
    Ok(names)
}

/// How many entries there are from here to the end.
fn rest(w: &World, handle: &str) -> StepResult {
    let folder = w.handle(handle)?;
    let mut count = 0;
    loop {
        let some = next(folder)?.len();
        count += some;
        if some == 0 {
            return Ok(count.to_string());
        }
    }
}

fn tell(w: &mut World, handle: &str, place: &str) -> StepResult {
    let at = rustix::fs::tell(w.handle(handle)?)?;
    w.places.insert(place.to_owned(), at);
    Ok("ok".to_owned())
}

/// Makes or removes the entries of a range of numbers.
fn many(w: &World, what: &str, path: &str, from: &str, to: &str) -> StepResult {
    let path = w.path(path);
    let (from, to) = (number(from)?, number(to)?);
    for i in from..to {
        let name = path.join(format!("entry-{i:06}"));
        match what {
            "create" => drop(std::fs::File::create(&name)?),
            "unlink" => std::fs::remove_file(&name)?,
            "mkdir" => std::fs::create_dir(&name)?,
            "rmdir" => std::fs::remove_dir(&name)?,
            "link" => std::fs::hard_link(path.join("entry-000000"), &name)?,
            _ => return Err(Fault::Script(format!("many '{what}'"))),
        }
    }
    Ok("ok".to_owned())
}

/// Copies a program of the host here.
fn install(w: &World, program: &str, path: &str) -> StepResult {
    let from = ["/bin", "/usr/bin"].map(|f| std::path::Path::new(f).join(program));
    let Some(from) = from.iter().find(|f| f.exists()) else {
        return Err(Fault::Script(format!("no program '{program}'")));
    };
    std::fs::copy(from, w.path(path))?;
    Ok("ok".to_owned())
}
