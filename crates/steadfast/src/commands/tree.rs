//! Trees of files: `ls`, `cat`, `put`, `get`, `rm`, `mkdir`, over any [`FileSystem`].

use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::keep;
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use steadfast_vfs::path::{list, parent_and_name, resolve};
use steadfast_vfs::{Attr, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, Timestamp};

/// Bytes moved at a time between the image and the host.
const CHUNK: usize = 1 << 20;

/// For messages: a path of the image as text.
pub fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn joined(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = dir.to_vec();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Writes one line an entry: mode, links, owner, group, size, time, name.
pub fn ls(fs: &dyn FileSystem, path: &[u8], out: &mut dyn Write) -> Result<()> {
    let attr = resolve(fs, path, true).with_context(|| shown(path))?;
    let mut rows = Vec::new();
    if attr.kind == FileType::Directory {
        let mut entries = list(fs, attr.ino).with_context(|| shown(path))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for e in entries {
            let attr = fs.getattr(e.ino).with_context(|| shown(&joined(path, &e.name)))?;
            let name = with_target(fs, &attr, shown(&e.name))?;
            rows.push((attr, name));
        }
    } else {
        rows.push((attr, shown(path)));
    }
    let width =
        |f: &dyn Fn(&Attr) -> String| rows.iter().map(|(a, _)| f(a).len()).max().unwrap_or(0);
    let links = width(&|a| a.nlink.to_string());
    let user = width(&|a| a.uid.to_string());
    let group = width(&|a| a.gid.to_string());
    let size = width(&|a| a.size.to_string());
    for (a, name) in &rows {
        writeln!(
            out,
            "{} {:>links$} {:>user$} {:>group$} {:>size$} {} {name}",
            mode_text(a),
            a.nlink,
            a.uid,
            a.gid,
            a.size,
            time_text(a.mtime)
        )?;
    }
    Ok(())
}

fn with_target(fs: &dyn FileSystem, attr: &Attr, name: String) -> Result<String> {
    if attr.kind != FileType::Symlink {
        return Ok(name);
    }
    let target = fs.readlink(attr.ino).with_context(|| name.clone())?;
    Ok(format!("{name} -> {}", shown(&target)))
}

fn mode_text(a: &Attr) -> String {
    let kind = match a.kind {
        FileType::Regular => '-',
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::CharDevice => 'c',
        FileType::BlockDevice => 'b',
        FileType::Fifo => 'p',
        FileType::Socket => 's',
    };
    let mut text = String::from(kind);
    let specials = [(0o4000, 's', 'S'), (0o2000, 's', 'S'), (0o1000, 't', 'T')];
    for (i, (special, with_x, without_x)) in specials.into_iter().enumerate() {
        let bits = a.mode >> (6 - 3 * i);
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (a.mode & special != 0, bits & 1 != 0) {
            (true, true) => with_x,
            (true, false) => without_x,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// UTC, as ISO 8601 to the second.
fn time_text(t: Timestamp) -> String {
    jiff::Timestamp::new(t.secs, 0)
        .map_or_else(|_| format!("@{}", t.secs), |t| t.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Copies a file's contents to `out`.
pub fn cat(fs: &dyn FileSystem, path: &[u8], out: &mut dyn Write) -> Result<()> {
    let attr = resolve(fs, path, true).with_context(|| shown(path))?;
    if attr.kind == FileType::Directory {
        bail!("{}: {}", shown(path), FsError::IsDirectory);
    }
    copy_out(fs, &attr, out).with_context(|| shown(path))
}

fn copy_out(fs: &dyn FileSystem, attr: &Attr, out: &mut dyn Write) -> Result<()> {
    if attr.kind != FileType::Regular {
        bail!("is not a regular file");
    }
    let fh = fs.open(attr.ino, OpenFlags::READ)?;
    let copied = (|| {
        let mut at = 0;
        loop {
            let part = fs.read(fh, at, CHUNK)?;
            if part.is_empty() {
                return Ok(());
            }
            out.write_all(&part)?;
            at += part.len() as u64;
        }
    })();
    fs.release(fh)?;
    copied
}

/// Makes a directory; its parent must exist.
pub fn mkdir(fs: &dyn FileSystem, path: &[u8]) -> Result<()> {
    let (dir, name) = parent_and_name(fs, path).with_context(|| shown(path))?;
    let node = NewNode { mode: 0o755, ..NewNode::default() };
    fs.mkdir(dir, name, node).with_context(|| shown(path))?;
    Ok(())
}

/// Removes a file, or with `recursive` a whole tree.
pub fn rm(fs: &dyn FileSystem, path: &[u8], recursive: bool) -> Result<()> {
    let (dir, name) = parent_and_name(fs, path).with_context(|| shown(path))?;
    let attr = fs.lookup(dir, name).with_context(|| shown(path))?;
    if attr.kind == FileType::Directory {
        if !recursive {
            bail!("{}: is a directory; use -r to remove it with all it holds", shown(path));
        }
        for e in list(fs, attr.ino).with_context(|| shown(path))? {
            rm(fs, &joined(path, &e.name), true)?;
        }
        return fs.rmdir(dir, name).with_context(|| shown(path));
    }
    fs.unlink(dir, name).with_context(|| shown(path))
}

/// Copies a host file (or with `recursive` a tree) into the image as `to`; if `to` is an existing
/// directory, under it with the host file's own name.
pub fn put(fs: &dyn FileSystem, host: &Path, to: &[u8], recursive: bool) -> Result<()> {
    let to = match resolve(fs, to, true) {
        Ok(a) if a.kind == FileType::Directory => match host.file_name() {
            Some(name) => joined(to, name.as_bytes()),
            None => to.to_vec(),
        },
        _ => to.to_vec(),
    };
    put_at(fs, host, &to, recursive)
}

fn put_at(fs: &dyn FileSystem, host: &Path, to: &[u8], recursive: bool) -> Result<()> {
    let from = || host.display().to_string();
    let meta = host.symlink_metadata().with_context(from)?;
    let node = NewNode {
        mode: (meta.permissions().mode() & 0o7777) as u16,
        uid: meta.uid(),
        gid: meta.gid(),
        umask: 0,
    };
    let kind = meta.file_type();
    if kind.is_dir() {
        if !recursive {
            bail!("{}: is a directory; use -r to copy it with all it holds", from());
        }
        let attr = make_or_find_dir(fs, to, node)?;
        let mut names: Vec<_> = std::fs::read_dir(host)
            .with_context(from)?
            .map(|e| e.map(|e| e.file_name()))
            .collect::<std::io::Result<_>>()
            .with_context(from)?;
        names.sort();
        for name in names {
            put_at(fs, &host.join(&name), &joined(to, name.as_bytes()), true)?;
        }
        return keep::put(fs, attr.ino, host, &meta).with_context(|| shown(to));
    }
    let (dir, name) = parent_and_name(fs, to).with_context(|| shown(to))?;
    if kind.is_symlink() {
        let target = std::fs::read_link(host).with_context(from)?;
        let target = target.into_os_string().into_vec();
        let attr = fs.symlink(dir, name, &target, node).with_context(|| shown(to))?;
        return keep::put(fs, attr.ino, host, &meta).with_context(|| shown(to));
    }
    if let Some((kind, rdev)) = keep::special(&meta) {
        let attr = fs.mknod(dir, name, kind, rdev, node).with_context(|| shown(to))?;
        return keep::put(fs, attr.ino, host, &meta).with_context(|| shown(to));
    }
    let mut source = std::fs::File::open(host).with_context(from)?;
    let (ino, fh) = create_or_truncate(fs, dir, name, node).with_context(|| shown(to))?;
    let copied = copy_in(fs, fh, &mut source).with_context(|| shown(to));
    fs.release(fh)?;
    copied?;
    keep::put(fs, ino, host, &meta).with_context(|| shown(to))
}

fn make_or_find_dir(fs: &dyn FileSystem, path: &[u8], node: NewNode) -> Result<Attr> {
    if path.iter().all(|b| *b == b'/') {
        return Ok(fs.getattr(fs.root())?);
    }
    let (dir, name) = parent_and_name(fs, path).with_context(|| shown(path))?;
    match fs.mkdir(dir, name, node) {
        Err(FsError::Exists) => {
            let attr = fs.lookup(dir, name).with_context(|| shown(path))?;
            if attr.kind != FileType::Directory {
                bail!("{}: exists and is not a directory", shown(path));
            }
            Ok(attr)
        }
        made => made.with_context(|| shown(path)),
    }
}

fn create_or_truncate(
    fs: &dyn FileSystem,
    dir: Ino,
    name: &[u8],
    node: NewNode,
) -> Result<(Ino, Fh), FsError> {
    match fs.create(dir, name, node, OpenFlags::WRITE) {
        Err(FsError::Exists) => {
            let attr = fs.lookup(dir, name)?;
            match attr.kind {
                FileType::Regular => {}
                FileType::Directory => return Err(FsError::IsDirectory),
                _ => return Err(FsError::Exists),
            }
            let fh = fs.open(attr.ino, OpenFlags::WRITE | OpenFlags::TRUNCATE)?;
            Ok((attr.ino, fh))
        }
        made => made.map(|(attr, fh)| (attr.ino, fh)),
    }
}

fn copy_in(fs: &dyn FileSystem, fh: Fh, source: &mut std::fs::File) -> Result<()> {
    use std::io::Read;
    let mut at = 0u64;
    loop {
        let mut part = Vec::with_capacity(CHUNK);
        Read::by_ref(source).take(CHUNK as u64).read_to_end(&mut part)?;
        if part.is_empty() {
            return Ok(());
        }
        let mut part = Bytes::from(part);
        while !part.is_empty() {
            let n = fs.write(fh, at, part.clone())?;
            if n == 0 {
                bail!("nothing could be written at byte {at}");
            }
            at += n as u64;
            part = part.slice(n..);
        }
    }
}

/// Copies a file (or with `recursive` a tree) out of the image; if the host path is an existing
/// directory, under it with the file's own name.
pub fn get(fs: &dyn FileSystem, from: &[u8], host: &Path, recursive: bool) -> Result<()> {
    let attr = resolve(fs, from, true).with_context(|| shown(from))?;
    let name = from.split(|b| *b == b'/').rfind(|n| !n.is_empty());
    let host: PathBuf = match name {
        Some(name) if host.is_dir() => host.join(std::ffi::OsStr::from_bytes(name)),
        _ => host.into(),
    };
    get_at(fs, &attr, from, &host, recursive)
}

fn get_at(
    fs: &dyn FileSystem,
    attr: &Attr,
    from: &[u8],
    host: &Path,
    recursive: bool,
) -> Result<()> {
    let to = || host.display().to_string();
    match attr.kind {
        FileType::Directory if !recursive => {
            bail!("{}: is a directory; use -r to copy it with all it holds", shown(from))
        }
        FileType::Directory => {
            if !host.is_dir() {
                std::fs::create_dir(host).with_context(to)?;
            }
            for e in list(fs, attr.ino).with_context(|| shown(from))? {
                let path = joined(from, &e.name);
                let child = fs.getattr(e.ino).with_context(|| shown(&path))?;
                get_at(fs, &child, &path, &host.join(std::ffi::OsStr::from_bytes(&e.name)), true)?;
            }
        }
        FileType::Symlink => {
            let target = fs.readlink(attr.ino).with_context(|| shown(from))?;
            std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(&target), host)
                .with_context(to)?;
            return keep::get(fs, attr, host).with_context(to);
        }
        FileType::Regular => {
            let mut file = std::fs::File::create(host).with_context(to)?;
            copy_out(fs, attr, &mut file).with_context(|| shown(from))?;
        }
        _ => keep::make_special(attr, host).with_context(to)?,
    }
    let mode = std::fs::Permissions::from_mode(u32::from(attr.mode));
    std::fs::set_permissions(host, mode).with_context(to)?;
    keep::get(fs, attr, host).with_context(to)
}
