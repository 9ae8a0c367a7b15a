//! Uses everything in a mounted file system that may be damaged: all that can fail may.

use steadfast_vfs::{
    Attr, Fallocate, FileSystem, FileType, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr,
    SetXattr,
};

/// Names of a directory that are looked at, and directories below each other.
const NAMES_MAX: usize = 40;
const DEPTH_MAX: u32 = 3;
/// Bytes read or written at a time.
const PIECE: usize = 3000;
/// A place that a small file has beyond its end, and an image has room for.
const FAR: u64 = 300 << 10;

/// Reads all, then changes all, then deletes all.
pub fn use_all(fs: &dyn FileSystem) {
    let mut found = Vec::new();
    look(fs, fs.root(), DEPTH_MAX, &mut found);
    let _ = fs.statfs();
    for (dir, name, attr) in &found {
        let _ = change(fs, *dir, name, attr);
    }
    let _ = fs.sync();
    for (dir, name, attr) in found.iter().rev() {
        let _ = match attr.kind {
            FileType::Directory => fs.rmdir(*dir, name),
            _ => fs.unlink(*dir, name),
        };
    }
    let _ = fs.create(fs.root(), b"last", NewNode::default(), OpenFlags::WRITE).map(|(_, fh)| {
        let _ = fs.write(fh, 0, vec![1; PIECE].into());
        fs.release(fh)
    });
}

type FileEntry = (Ino, Vec<u8>, Attr);

fn look(fs: &dyn FileSystem, dir: Ino, depth: u32, found: &mut Vec<FileEntry>) {
    let (mut from, mut left) = (0, NAMES_MAX);
    while let Ok(entries) = fs.readdir(dir, from) {
        let Some(last) = entries.last() else { break };
        from = last.next;
        for entry in &entries {
            if left == 0 || matches!(&entry.name[..], b"." | b"..") {
                continue;
            }
            left -= 1;
            let Ok(attr) = fs.lookup(dir, &entry.name) else { continue };
            read(fs, &attr);
            found.push((dir, entry.name.clone(), attr));
            if attr.kind == FileType::Directory && depth > 0 {
                look(fs, attr.ino, depth - 1, found);
            }
        }
        if left == 0 {
            break;
        }
    }
    let _ = fs.readdir_block(dir, 0);
    let _ = fs.lookup(dir, b"no such name");
}

fn read(fs: &dyn FileSystem, attr: &Attr) {
    let ino = attr.ino;
    for name in fs.listxattr(ino).unwrap_or_default().iter().take(NAMES_MAX) {
        let _ = fs.getxattr(ino, name);
    }
    let _ = fs.getxattr(ino, b"system.posix_acl_access");
    let _ = (fs.inode_flags(ino), fs.project(ino), fs.extents(ino, 0, FAR));
    match attr.kind {
        FileType::Symlink => drop(fs.readlink(ino)),
        FileType::Regular => {
            let Ok(fh) = fs.open(ino, OpenFlags::READ) else { return };
            let _ = fs.read(fh, 0, 20 * PIECE);
            let _ = fs.read(fh, attr.size.saturating_sub(PIECE as u64), 2 * PIECE);
            let _ = fs.seek(fh, 0, steadfast_vfs::SeekTo::Hole);
            let _ = fs.release(fh);
        }
        _ => {}
    }
}

fn change(fs: &dyn FileSystem, dir: Ino, name: &[u8], attr: &Attr) -> Result<()> {
    let ino = attr.ino;
    let _ = fs.setxattr(ino, b"user.small", b"value", SetXattr::Any);
    let _ = fs.setxattr(ino, b"user.large", &[b'v'; 700], SetXattr::Any);
    let _ = fs.removexattr(ino, b"user.a");
    let _ = fs.setattr(ino, SetAttr { mode: Some(0o640), uid: Some(7), ..SetAttr::default() });
    let _ = fs.set_project(ino, 5);
    match attr.kind {
        FileType::Directory => {
            let (_, fh) = fs.create(ino, b"new", NewNode::default(), OpenFlags::WRITE)?;
            fs.release(fh)?;
            let _ = fs.rename((ino, b"new"), (ino, b"renamed"), RenameFlags::empty());
            let _ = fs.link(fs.lookup(ino, b"renamed")?.ino, dir, b"linked");
            let _ = fs.unlink(ino, b"renamed");
        }
        FileType::Regular => {
            let fh = fs.open(ino, OpenFlags::READ | OpenFlags::WRITE)?;
            let _ = fs.write(fh, attr.size / 2, vec![9; PIECE].into());
            let _ = fs.write(fh, FAR, vec![9; PIECE].into());
            let _ = fs.fallocate(fh, Fallocate::PunchHole, 2048, 4096);
            let _ = fs.fsync(fh, false);
            let size = Some(attr.size / 3);
            let _ = fs.setattr(ino, SetAttr { size, ..SetAttr::default() });
            fs.release(fh)?;
        }
        _ => {}
    }
    let moved = [b"moved ", name].concat();
    let _ = fs.rename((dir, name), (fs.root(), &moved), RenameFlags::empty());
    fs.rename((fs.root(), &moved), (dir, name), RenameFlags::empty())
}
