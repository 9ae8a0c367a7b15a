//! Several file systems as one tree: one, and others mounted in folders of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Advice, Attr, DirBlock, Dirent, Fallocate, Fh, FileExtent, FileSystem, FileType, FsError, Ino,
    NewNode, OpenFlags, RenameFlags, Result, SeekTo, SetAttr, SetXattr, Shutdown, StatFs,
    TransactPolicy,
};

/// An inode's number in its file system; above these bits stands the number of the file system.
const INODE_BITS: u32 = 28;
/// The same of a handle.
const HANDLE_BITS: u32 = 56;
/// File systems that can be joined.
pub const JOINED_MAX: usize = 1 << (32 - INODE_BITS);

/// A file system with others mounted in its folders, all behind one root.
///
/// As with mounts: what a folder held before is covered; no name leads from one to the other
/// (EXDEV); a folder that is mounted on is neither moved nor removed (EBUSY). Each call reaches one
/// of them, only [`sync`](FileSystem::sync) and going down reach all. Space is that of all
/// together; what else is asked of a file system as a whole (label, transaction points) is asked of
/// the first.
pub struct JoinedFs {
    parts: Vec<Part>,
}

struct Part {
    fs: Arc<dyn FileSystem>,
    /// The folder that it is mounted on, and the one above it; of the first part its root.
    covered: Ino,
    above: Ino,
}

impl JoinedFs {
    /// `first` with the others mounted on these folders of it, by their paths without '/' before.
    ///
    /// # Errors
    /// A folder is not there, is mounted on already, or these are too many.
    pub fn new(
        first: Arc<dyn FileSystem>,
        others: Vec<(Vec<u8>, Arc<dyn FileSystem>)>,
    ) -> Result<JoinedFs> {
        let root = first.root();
        if others.len() >= JOINED_MAX {
            return Err(FsError::Invalid { what: "at most 16 file systems are joined" });
        }
        let mut parts = vec![Part { fs: first, covered: root, above: root }];
        for (folder, fs) in others {
            let (above, name) = crate::path::parent_and_name(&*parts[0].fs, &folder)?;
            let found = parts[0].fs.lookup(above, name)?;
            if found.kind != FileType::Directory {
                return Err(FsError::NotDirectory);
            }
            if parts.iter().any(|part| part.covered == found.ino) {
                return Err(FsError::Busy { what: "the folder is mounted on" });
            }
            parts.push(Part { fs, covered: found.ino, above });
        }
        Ok(JoinedFs { parts })
    }

    /// Which file system an inode is of, and its number there.
    fn of(&self, ino: Ino) -> Result<(usize, Ino)> {
        let part = (ino.0 >> INODE_BITS) as usize;
        let inside = Ino(ino.0 & ((1 << INODE_BITS) - 1));
        if part < self.parts.len() { Ok((part, inside)) } else { Err(FsError::Stale) }
    }

    fn of_handle(&self, fh: Fh) -> Result<(usize, Fh)> {
        let part = (fh.0 >> HANDLE_BITS) as usize;
        let inside = Fh(fh.0 & ((1 << HANDLE_BITS) - 1));
        if part < self.parts.len() { Ok((part, inside)) } else { Err(FsError::BadHandle) }
    }

    /// The file system that is mounted on this folder of the first one.
    fn mounted_on(&self, part: usize, ino: Ino) -> Option<usize> {
        let is_here = |n: &usize| part == 0 && self.parts[*n].covered == ino;
        (1..self.parts.len()).find(is_here)
    }

    /// What is mounted on a name cannot be moved or removed.
    fn is_free(&self, (part, dir): (usize, Ino), name: &[u8]) -> Result<()> {
        let is_above = part == 0 && self.parts.iter().skip(1).any(|part| part.above == dir);
        if is_above
            && let Ok(found) = self.parts[0].fs.lookup(dir, name)
            && self.mounted_on(0, found.ino).is_some()
        {
            return Err(FsError::Busy { what: "a file system is mounted on it" });
        }
        Ok(())
    }

    /// A number outside of it.
    fn outward(part: usize, ino: Ino) -> Result<Ino> {
        match ino.0 >> INODE_BITS {
            0 => Ok(Ino((part as u64) << INODE_BITS | ino.0)),
            _ => Err(FsError::Unsupported { what: "inode numbers of more than 28 bits".into() }),
        }
    }
}

/// What a file system answers, with the numbers that it has outside.
trait Answer: Sized {
    fn outside(self, part: usize) -> Result<Self>;
}

impl Answer for Attr {
    fn outside(self, part: usize) -> Result<Attr> {
        Ok(Attr { ino: JoinedFs::outward(part, self.ino)?, ..self })
    }
}

impl Answer for Fh {
    fn outside(self, part: usize) -> Result<Fh> {
        Ok(Fh((part as u64) << HANDLE_BITS | self.0))
    }
}

impl Answer for (Attr, Fh) {
    fn outside(self, part: usize) -> Result<(Attr, Fh)> {
        Ok((self.0.outside(part)?, self.1.outside(part)?))
    }
}

macro_rules! as_they_are {
    ($($type:ty),*) => {$(
        impl Answer for $type {
            fn outside(self, _part: usize) -> Result<Self> {
                Ok(self)
            }
        }
    )*};
}
as_they_are!((), usize, u32, u64, Bytes, Vec<u8>, Vec<Vec<u8>>, Vec<FileExtent>);

/// Calls that go to the file system of an inode or of a handle, their first word.
macro_rules! pass_on {
    ($of:ident: $number:ident: $($call:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $call(&self, at: $number, $($arg: $type),*) -> Result<$answer> {
            let (part, at) = self.$of(at)?;
            self.parts[part].fs.$call(at, $($arg),*)?.outside(part)
        }
    )*};
}

/// Calls that go to the first file system.
macro_rules! to_the_first {
    ($($call:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $call(&self, $($arg: $type),*) -> $answer {
            self.parts[0].fs.$call($($arg),*)
        }
    )*};
}

impl FileSystem for JoinedFs {
    pass_on! { of: Ino:
        getattr() -> Attr;
        hold() -> Attr;
        by_number() -> Attr;
        setattr(set: SetAttr) -> Attr;
        create(name: &[u8], node: NewNode, flags: OpenFlags) -> (Attr, Fh);
        mkdir(name: &[u8], node: NewNode) -> Attr;
        symlink(name: &[u8], target: &[u8], node: NewNode) -> Attr;
        readlink() -> Vec<u8>;
        unlink(name: &[u8]) -> ();
        open(flags: OpenFlags) -> Fh;
        fsyncdir() -> ();
        mknod(name: &[u8], what: (FileType, u64), node: NewNode) -> Attr;
        tmpfile(node: NewNode, flags: OpenFlags) -> (Attr, Fh);
        extents(offset: u64, len: u64) -> Vec<FileExtent>;
        getxattr(name: &[u8]) -> Vec<u8>;
        setxattr(name: &[u8], value: &[u8], how: SetXattr) -> ();
        listxattr() -> Vec<Vec<u8>>;
        removexattr(name: &[u8]) -> ();
        inode_flags() -> u32;
        set_inode_flags(flags: u32) -> ();
        project() -> u32;
        set_project(project: u32) -> ();
    }

    pass_on! { of_handle: Fh:
        flush() -> ();
        release() -> ();
        read(offset: u64, len: usize) -> Bytes;
        write(offset: u64, data: Bytes) -> usize;
        write_as(offset: u64, data: Bytes, how: OpenFlags) -> usize;
        read_as(offset: u64, len: usize, direct: bool) -> Bytes;
        fsync(data_only: bool) -> ();
        fallocate(what: Fallocate, offset: u64, len: u64) -> ();
        seek(offset: u64, to: SeekTo) -> u64;
        advise(offset: u64, len: u64, advice: Advice) -> ();
    }

    to_the_first! {
        root() -> Ino;
        label() -> Result<Vec<u8>>;
        set_label(label: &[u8]) -> Result<()>;
        transact_policy() -> Result<TransactPolicy>;
    }

    fn statfs(&self) -> Result<StatFs> {
        let mut all = self.parts[0].fs.statfs()?;
        for part in &self.parts[1..] {
            let more = part.fs.statfs()?;
            let (from, to) = (u64::from(more.block_size), u64::from(all.block_size).max(1));
            let blocks = |count: u64| count.saturating_mul(from) / to;
            all.blocks += blocks(more.blocks);
            all.blocks_free += blocks(more.blocks_free);
            all.blocks_available += blocks(more.blocks_available);
            all.inodes += more.inodes;
            all.inodes_free += more.inodes_free;
            all.name_max = all.name_max.min(more.name_max);
        }
        Ok(all)
    }

    fn names_have_one_spelling(&self) -> bool {
        self.parts.iter().all(|part| part.fs.names_have_one_spelling())
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        let (part, dir) = self.of(dir)?;
        let Part { fs, above, .. } = &self.parts[part];
        if part > 0 && name == b".." && dir == fs.root() {
            return self.getattr(*above);
        }
        let found = fs.lookup(dir, name)?;
        let Some(mounted) = self.mounted_on(part, found.ino) else { return found.outside(part) };
        let fs = &self.parts[mounted].fs;
        fs.getattr(fs.root())?.outside(mounted)
    }

    fn hold_number(&self, ino: Ino) {
        if let Ok((part, ino)) = self.of(ino) {
            self.parts[part].fs.hold_number(ino);
        }
    }

    fn let_go(&self, ino: Ino, holds: u64) -> bool {
        self.of(ino).is_ok_and(|(part, ino)| self.parts[part].fs.let_go(ino, holds))
    }

    fn let_go_all(&self) {
        self.parts.iter().for_each(|part| part.fs.let_go_all());
    }

    fn forget_inode(&self, ino: Ino) {
        if let Ok((part, ino)) = self.of(ino) {
            self.parts[part].fs.forget_inode(ino);
        }
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let ((part, ino), (other, dir)) = (self.of(ino)?, self.of(dir)?);
        same(part, other)?;
        self.parts[part].fs.link(ino, dir, name)?.outside(part)
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        let at = self.of(dir)?;
        self.is_free(at, name)?;
        self.parts[at.0].fs.rmdir(at.1, name)
    }

    fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<()> {
        let (source, target) = (self.of(from.0)?, self.of(to.0)?);
        self.is_free(source, from.1)?;
        self.is_free(target, to.1)?;
        same(source.0, target.0)?;
        self.parts[source.0].fs.rename((source.1, from.1), (target.1, to.1), flags)
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        let (part, dir) = self.of(dir)?;
        let Part { fs, above, .. } = &self.parts[part];
        let is_root = part > 0 && dir == fs.root();
        let shown = |entry: Dirent| {
            let (at, ino) = match self.mounted_on(part, entry.ino) {
                _ if is_root && entry.name == b".." => (0, *above),
                Some(mounted) => (mounted, self.parts[mounted].fs.root()),
                None => (part, entry.ino),
            };
            Ok(Dirent { ino: JoinedFs::outward(at, ino)?, ..entry })
        };
        fs.readdir(dir, from)?.into_iter().map(shown).collect()
    }

    fn readdir_block(&self, dir: Ino, from: u64) -> Result<Option<DirBlock>> {
        let (part, dir) = self.of(dir)?;
        let Some(block) = self.parts[part].fs.readdir_block(dir, from)? else { return Ok(None) };
        let outward =
            |entry: Dirent| Ok(Dirent { ino: JoinedFs::outward(part, entry.ino)?, ..entry });
        let entries = block.entries.into_iter().map(outward).collect::<Result<_>>()?;
        Ok(Some(DirBlock { entries, ..block }))
    }

    fn sync(&self) -> Result<()> {
        // All of them, also where one fails.
        let synced: Vec<Result<()>> = self.parts.iter().map(|part| part.fs.sync()).collect();
        synced.into_iter().collect()
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        let down: Vec<Result<()>> = self.parts.iter().map(|part| part.fs.shutdown(how)).collect();
        down.into_iter().collect()
    }
}

fn same(one: usize, other: usize) -> Result<()> {
    if one == other { Ok(()) } else { Err(FsError::CrossDevice { what: "a file system" }) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tempfile::tempdir;

    use super::*;
    use crate::HostFs;
    use crate::path::{list, resolve};

    /// Inodes of a host's file system may have longer numbers.
    fn host(folder: &Path) -> Arc<dyn FileSystem> {
        Arc::new(HostFs::open(folder).unwrap())
    }

    #[test]
    fn what_is_mounted_is_seen_and_stays() {
        let (one, other) = (tempdir().unwrap(), tempdir().unwrap());
        std::fs::create_dir_all(one.path().join("a/wal/covered")).unwrap();
        std::fs::write(other.path().join("log"), "text").unwrap();
        let others = vec![(b"a/wal".to_vec(), host(other.path()))];
        let fs = JoinedFs::new(host(one.path()), others).unwrap();
        let [a, wal] = ["/a", "/a/wal"].map(|path| resolve(&fs, path.as_bytes(), true).unwrap());
        assert!(resolve(&fs, b"/a/wal/covered", true).is_err());
        assert_eq!(resolve(&fs, b"/a/wal/..", true).unwrap().ino, a.ino);
        let names: Vec<_> = list(&fs, wal.ino).unwrap().into_iter().map(|e| e.name).collect();
        assert!(names.contains(&b"log".to_vec()), "{names:?}");
        let log = fs.lookup(wal.ino, b"log").unwrap();
        let listed = list(&fs, a.ino).unwrap();
        assert_eq!(listed.iter().find(|e| e.name == b"wal").unwrap().ino, wal.ino);
        let fh = fs.open(log.ino, OpenFlags::READ).unwrap();
        assert_eq!(&fs.read(fh, 0, 9).unwrap()[..], b"text");
        fs.release(fh).unwrap();
        let plain = RenameFlags::empty();
        let across = fs.rename((wal.ino, b"log"), (a.ino, b"log"), plain);
        assert!(matches!(across, Err(FsError::CrossDevice { .. })), "{across:?}");
        let moved = fs.rename((a.ino, b"wal"), (fs.root(), b"wal"), plain);
        assert!(matches!(moved, Err(FsError::Busy { .. })), "{moved:?}");
        assert!(matches!(fs.rmdir(a.ino, b"wal"), Err(FsError::Busy { .. })));
        let linked = fs.link(log.ino, a.ino, b"log");
        assert!(matches!(linked, Err(FsError::CrossDevice { .. })), "{linked:?}");
        fs.rename((wal.ino, b"log"), (wal.ino, b"new"), plain).unwrap();
        assert!(other.path().join("new").exists());
    }

    #[test]
    fn a_folder_is_mounted_on_once() {
        let (one, other) = (tempdir().unwrap(), tempdir().unwrap());
        std::fs::create_dir(one.path().join("wal")).unwrap();
        std::fs::write(one.path().join("file"), "").unwrap();
        let joined = |names: &[&str]| {
            let others = names.iter().map(|name| (name.as_bytes().to_vec(), host(other.path())));
            JoinedFs::new(host(one.path()), others.collect()).is_ok()
        };
        assert!(joined(&["wal"]));
        assert!(!joined(&["wal", "wal"]) && !joined(&["file"]) && !joined(&["none"]));
    }
}
