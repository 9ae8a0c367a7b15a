//! What a recovered file system holds.

use std::collections::BTreeMap;

use steadfast_vfs::{FileSystem, FileType, FsError, Ino, OpenFlags, path};

/// The attribute that is looked at.
pub(crate) const ATTRIBUTE: &[u8] = b"user.x";

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    File,
    Folder,
    Symlink,
}

/// One name that was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub kind: Kind,
    pub ino: u64,
    pub mode: u16,
    pub links: u32,
    pub target: String,
    /// The value of [`ATTRIBUTE`]; nothing if it has none.
    pub attribute: Vec<u8>,
    pub data: Vec<u8>,
}

/// Everything below the task's folder, by path; the folder itself is "". `None` if there is no
/// such folder.
pub(crate) fn folder(
    fs: &dyn FileSystem,
    name: &str,
) -> Result<Option<BTreeMap<String, Seen>>, String> {
    let root = match fs.lookup(fs.root(), name.as_bytes()) {
        Ok(attr) => attr,
        Err(FsError::NotFound) => return Ok(None),
        Err(e) => return Err(format!("{name}: {e}")),
    };
    let mut found = BTreeMap::new();
    let mut left = vec![(String::new(), root.ino)];
    while let Some((at, ino)) = left.pop() {
        let fail = |e: FsError| format!("{name}/{at}: {e}");
        let (seen, inside) = look(fs, ino).map_err(fail)?;
        for (child, ino) in inside {
            let below = if at.is_empty() { child } else { format!("{at}/{child}") };
            left.push((below, ino));
        }
        if found.insert(at.clone(), seen).is_some() || found.len() > 10_000 {
            return Err(format!("{name}/{at}: a loop of folders, or a name that is there twice"));
        }
    }
    Ok(Some(found))
}

fn look(fs: &dyn FileSystem, ino: Ino) -> Result<(Seen, Vec<(String, Ino)>), FsError> {
    let attr = fs.getattr(ino)?;
    let mut seen = Seen {
        kind: Kind::File,
        ino: ino.0,
        mode: attr.mode,
        links: attr.nlink,
        target: String::new(),
        attribute: attribute(fs, ino)?,
        data: Vec::new(),
    };
    let mut inside = Vec::new();
    match attr.kind {
        FileType::Directory => {
            seen.kind = Kind::Folder;
            for entry in path::list(fs, ino)? {
                // Not the entry's number: that of a name may be known only once it was looked up.
                let found = fs.lookup(ino, &entry.name)?;
                inside.push((String::from_utf8_lossy(&entry.name).into_owned(), found.ino));
            }
        }
        FileType::Symlink => {
            seen.kind = Kind::Symlink;
            seen.target = String::from_utf8_lossy(&fs.readlink(ino)?).into_owned();
        }
        _ => seen.data = contents(fs, ino, attr.size)?,
    }
    Ok((seen, inside))
}

fn attribute(fs: &dyn FileSystem, ino: Ino) -> Result<Vec<u8>, FsError> {
    match fs.getxattr(ino, ATTRIBUTE) {
        Err(FsError::NoData | FsError::Unsupported { .. }) => Ok(Vec::new()),
        found => found,
    }
}

fn contents(fs: &dyn FileSystem, ino: Ino, size: u64) -> Result<Vec<u8>, FsError> {
    let fh = fs.open(ino, OpenFlags::READ)?;
    let mut data = Vec::new();
    let outcome = loop {
        match fs.read(fh, data.len() as u64, 1 << 20) {
            Ok(part) if part.is_empty() => break Ok(()),
            Ok(part) => data.extend_from_slice(&part),
            Err(e) => break Err(e),
        }
    };
    fs.release(fh)?;
    outcome?;
    if data.len() as u64 != size {
        return Err(FsError::Io { what: format!("{} of {size} bytes could be read", data.len()) });
    }
    Ok(data)
}
