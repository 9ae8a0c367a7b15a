//! What all tasks share: a folder in which they race for names, and a file of which each has parts.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::contents::{call, map, open};
use super::random::SplitMix64;
use super::task::Fault;
use crate::names::differ;

/// Names raced for: few, so that tasks meet.
const NAMES: usize = 12;
/// Each task has its blocks of this length in the shared file, in which it may write directly ...
const BLOCKS: usize = 64 << 10;
/// ... and, behind all tasks' blocks, stripes that share pages with the others'.
const STRIPE: usize = 1500;
const STRIPES: usize = 40;

/// A task's view of what is shared.
pub(super) struct SharedFile {
    folder: PathBuf,
    file: PathBuf,
    task: usize,
    tasks: usize,
    blocks: Vec<u8>,
    stripes: Vec<u8>,
    /// Calls so far with O_DIRECT, and through a map.
    pub(super) direct: u64,
    pub(super) mapped: u64,
}

impl SharedFile {
    /// Makes the folder and the file.
    pub(super) fn make(root: &Path, tasks: usize) -> Result<(), Fault> {
        let make = |r: std::io::Result<()>| r.map_err(|e| format!("{}: {e}", root.display()));
        make(std::fs::create_dir(root.join("names")))?;
        make(std::fs::write(root.join("parts"), vec![0; tasks * (BLOCKS + STRIPE * STRIPES)]))
    }

    pub(super) fn new(root: &Path, task: usize, tasks: usize) -> SharedFile {
        let (folder, file) = (root.join("names"), root.join("parts"));
        let (blocks, stripes) = (vec![0; BLOCKS], vec![0; STRIPE * STRIPES]);
        SharedFile { folder, file, task, tasks, blocks, stripes, direct: 0, mapped: 0 }
    }

    /// A call on a name that others use at the same time. It may fail, but only for a reason that
    /// another task's call can be; what is read must be what somebody wrote as a whole.
    pub(super) fn race(&self, random: &mut SplitMix64) -> Result<(), Fault> {
        let a = self.folder.join(format!("n{}", random.below(NAMES)));
        let b = self.folder.join(format!("n{}", random.below(NAMES)));
        use Errno as E;
        let (name, result, allowed): (_, Result<(), Errno>, &[Errno]) = match random.below(9) {
            0 | 1 => ("create", self.create_whole(&a), &[E::EXIST]),
            2 => ("unlink", rustix::fs::unlink(&a), &[E::NOENT, E::ISDIR]),
            3 => ("mkdir", rustix::fs::mkdir(&a, Mode::from_raw_mode(0o755)), &[E::EXIST]),
            4 => ("rmdir", rustix::fs::rmdir(&a), &[E::NOENT, E::NOTDIR, E::NOTEMPTY]),
            5 => {
                let allowed = &[E::NOENT, E::NOTDIR, E::ISDIR, E::NOTEMPTY, E::EXIST];
                ("rename", rustix::fs::rename(&a, &b), allowed)
            }
            6 => {
                let done = rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE);
                ("exchange", done, &[E::NOENT, E::INVAL, E::OPNOTSUPP])
            }
            7 => ("link", rustix::fs::link(&a, &b), &[E::NOENT, E::EXIST, E::PERM]),
            _ => return self.read_whole(&a),
        };
        match result {
            Ok(()) => Ok(()),
            Err(errno) if allowed.contains(&errno) => Ok(()),
            Err(errno) => Err(format!("race: {name}: {errno}")),
        }
    }

    /// A file that gets its name only when it is whole.
    fn create_whole(&self, path: &Path) -> Result<(), Errno> {
        let aside = self.folder.join(format!("aside-{}", self.task));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = rustix::fs::open(&aside, flags, Mode::from_raw_mode(0o644))?;
        rustix::io::write(&file, &[b'0' + self.task as u8; 3000])?;
        let linked = rustix::fs::link(&aside, path);
        rustix::fs::unlink(&aside)?;
        linked
    }

    fn read_whole(&self, path: &Path) -> Result<(), Fault> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let errno = Errno::from_io_error(&error);
                let is_fine = matches!(errno, Some(Errno::NOENT | Errno::ISDIR));
                return if is_fine { Ok(()) } else { Err(format!("race: read: {error}")) };
            }
        };
        let whole = bytes.len() == 3000 && bytes.iter().all(|b| *b == bytes[0]);
        match whole {
            true => Ok(()),
            false => Err(format!("race: {} is torn: {} bytes", path.display(), bytes.len())),
        }
    }

    fn start_of_blocks(&self) -> usize {
        self.task * BLOCKS
    }

    /// The tasks' stripes lie in turn, so that pages belong to several.
    fn start_of_stripe(&self, i: usize) -> usize {
        self.tasks * BLOCKS + (i * self.tasks + self.task) * STRIPE
    }

    /// Writes or reads something in the own parts of the shared file.
    pub(super) fn ranges(&mut self, random: &mut SplitMix64) -> Result<(), Fault> {
        match random.below(6) {
            0 => self.write_directly(random),
            1 => self.write_mapped(random),
            2 | 3 => {
                let i = random.below(STRIPES);
                let bytes = random.bytes(STRIPE);
                let file = open(&self.file, OFlags::RDWR)?;
                write_all(&file, self.start_of_stripe(i), &bytes)?;
                self.stripes[i * STRIPE..][..STRIPE].copy_from_slice(&bytes);
                Ok(())
            }
            4 => {
                let (at, len) = random.range(BLOCKS);
                let bytes = random.bytes(len);
                let file = open(&self.file, OFlags::RDWR)?;
                write_all(&file, self.start_of_blocks() + at, &bytes)?;
                self.blocks[at..][..len].copy_from_slice(&bytes);
                Ok(())
            }
            _ => self.verify_some(random),
        }
    }

    fn write_directly(&mut self, random: &mut SplitMix64) -> Result<(), Fault> {
        self.direct += 1;
        let at = random.below(BLOCKS / 4096) * 4096;
        let file = open(&self.file, OFlags::RDWR | OFlags::DIRECT)?;
        let bytes = random.bytes(4096);
        // Some page of twice as much begins where it must.
        let mut buffer = vec![0; 8192];
        let start = buffer.as_ptr().align_offset(4096);
        buffer[start..][..4096].copy_from_slice(&bytes);
        write_all(&file, self.start_of_blocks() + at, &buffer[start..][..4096])?;
        self.blocks[at..][..4096].copy_from_slice(&bytes);
        Ok(())
    }

    /// Changes a stripe through a map, while others change other parts of its pages.
    fn write_mapped(&mut self, random: &mut SplitMix64) -> Result<(), Fault> {
        self.mapped += 1;
        let i = random.below(STRIPES);
        let start = self.start_of_stripe(i);
        let bytes = random.bytes(STRIPE);
        let (mut map, at) = map(&self.file, start, STRIPE, true)?;
        map.write(at, &bytes);
        self.stripes[i * STRIPE..][..STRIPE].copy_from_slice(&bytes);
        Ok(())
    }

    fn verify_some(&self, random: &mut SplitMix64) -> Result<(), Fault> {
        let file = open(&self.file, OFlags::RDONLY)?;
        if random.one_in(2) {
            let found = read_all(&file, self.start_of_blocks(), BLOCKS)?;
            return Ok(differ("own blocks of the shared file", &found, &self.blocks)?);
        }
        self.verify_stripe(&file, random.below(STRIPES))
    }

    fn verify_stripe(&self, file: &OwnedFd, i: usize) -> Result<(), Fault> {
        let found = read_all(file, self.start_of_stripe(i), STRIPE)?;
        let expected = &self.stripes[i * STRIPE..][..STRIPE];
        Ok(differ(&format!("stripe {i} of the shared file"), &found, expected)?)
    }

    /// All the own parts.
    pub(super) fn verify(&self) -> Result<(), Fault> {
        let file = open(&self.file, OFlags::RDONLY)?;
        let found = read_all(&file, self.start_of_blocks(), BLOCKS)?;
        differ("own blocks of the shared file", &found, &self.blocks)?;
        (0..STRIPES).try_for_each(|i| self.verify_stripe(&file, i))
    }
}

fn write_all(file: &OwnedFd, at: usize, bytes: &[u8]) -> Result<(), Fault> {
    let n = call("write", rustix::io::pwrite(file, bytes, at as u64))?;
    if n == bytes.len() { Ok(()) } else { Err(format!("wrote {n} bytes of {}", bytes.len())) }
}

fn read_all(file: &OwnedFd, at: usize, len: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = vec![0; len];
    let n = call("read", rustix::io::pread(file, &mut bytes[..], at as u64))?;
    bytes.truncate(n);
    Ok(bytes)
}
