//! `steadfast mount` in the set-ups in which durable calls are measured, made anew each time: on an
//! emulated range of memory with files in place, and on a disk's file with its journal on such a
//! range. What a user would type, by the program itself.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use steadfast_host::Folder;

use crate::target::steadfast::{Daemon, mount};
use crate::target::{ImagePaths, LIMIT, umount};
use crate::{Result, SuiteError, run, run_ok};

const MIB: u64 = 1 << 20;
/// Bytes of a range's label, which is in its file behind what can be used (`steadfast pmem`).
const LABEL: u64 = 128 << 10;

/// What it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetMedium {
    /// An emulated range, a file that is made: so many bytes for the file system.
    Memory(PathBuf, u64),
    /// A file that is there, used past the page cache of the machine.
    Disk(PathBuf),
}

/// How it is made and mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounting {
    /// The program.
    pub binary: PathBuf,
    /// The device.
    pub place: TargetMedium,
    /// A range for the journal, which is made, and its bytes; none: it is inside.
    pub journal: Option<(PathBuf, u64)>,
    /// With fast commits.
    pub fast_commit: bool,
    /// Further mount options, comma-separated.
    pub options: String,
}

/// A mounted one. Unmounted when dropped, whatever happened; the ranges are gone then.
#[derive(Debug)]
pub struct TargetMount {
    folder: Folder,
    daemon: Option<Daemon>,
    ranges: Vec<PathBuf>,
}

impl TargetMount {
    /// Makes it and mounts it.
    ///
    /// # Errors
    /// What a program said.
    pub fn new(how: &Mounting) -> Result<TargetMount> {
        let place = std::env::temp_dir();
        let folder = Folder::new_in(&place, "sfs-").map_err(SuiteError::host(&place))?;
        let mut mounted = TargetMount { folder, daemon: None, ranges: Vec::new() };
        let steadfast = || Command::new(&how.binary);
        let image = match &how.place {
            TargetMedium::Memory(path, bytes) => mounted.range(how, path, *bytes)?,
            TargetMedium::Disk(path) => path.clone(),
        };
        let mut mkfs = steadfast();
        // Blocks that were discarded would have to be found again, while calls are timed.
        mkfs.args(["mkfs", "-q", "-F", "-b", "4096", "-E", "nodiscard", "--accept-volatile"]);
        if how.fast_commit {
            mkfs.args(["-O", "fast_commit"]);
        }
        let journal = match &how.journal {
            Some((path, bytes)) => Some(mounted.range(how, path, *bytes)?),
            None => None,
        };
        if let Some(journal) = &journal {
            let mut made = steadfast();
            made.args(["mkfs", "-q", "-F", "-b", "4096", "-E", "nodiscard", "--accept-volatile"]);
            run_ok(LIMIT, made.args(["-O", "journal_dev"]).arg(journal))?;
            mkfs.args(["-J", &format!("device={}", journal.display())]);
        }
        run_ok(LIMIT, mkfs.arg(&image))?;
        let mut options = vec!["noatime", "accept_volatile"];
        options.extend(how.fast_commit.then_some("fast_commit"));
        options.extend(matches!(how.place, TargetMedium::Memory(..)).then_some("dax=always"));
        options.extend(Some(how.options.as_str()).filter(|more| !more.is_empty()));
        let log = mounted.folder.path().join("log");
        let mountpoint = mounted.mountpoint();
        std::fs::create_dir(&mountpoint).map_err(SuiteError::host(&mountpoint))?;
        let paths =
            ImagePaths { image: &image, journal: journal.as_deref(), mountpoint: &mountpoint };
        mounted.daemon = Some(mount(&how.binary, &paths, &options.join(","), &log)?);
        Ok(mounted)
    }

    /// Makes an emulated range, of which every page is there: that the host finds one is not to
    /// be timed.
    fn range(&mut self, how: &Mounting, path: &Path, bytes: u64) -> Result<PathBuf> {
        let mut create = Command::new(&how.binary);
        create.args(["pmem", "create", "--emulate", &(bytes + LABEL).to_string()]);
        run_ok(LIMIT, create.arg(path))?;
        self.ranges.push(path.to_owned());
        let written = File::options().write(true).open(path).and_then(|mut file| {
            let zeros = vec![0; MIB as usize];
            let mut left = bytes;
            while left > 0 {
                let part = left.min(MIB);
                // OK to cast: at most a MiB.
                file.write_all(&zeros[..part as usize])?;
                left -= part;
            }
            Ok(())
        });
        written.map_err(SuiteError::host(path))?;
        Ok(path.to_owned())
    }

    /// Where it is mounted.
    pub fn mountpoint(&self) -> PathBuf {
        self.folder.path().join("m")
    }

    /// The number of the process that serves it.
    pub fn pid(&self) -> Option<u32> {
        self.daemon.as_ref().map(Daemon::pid)
    }

    /// Unmounts it and waits for the program's end.
    ///
    /// # Errors
    /// If it stays busy, or the program ends with an error.
    pub fn unmount(mut self) -> Result<()> {
        let mountpoint = self.mountpoint();
        self.daemon.take().map_or(Ok(()), |daemon| daemon.unmount(&mountpoint))
    }
}

impl Drop for TargetMount {
    fn drop(&mut self) {
        if self.daemon.is_some() && umount(&self.mountpoint()).is_err() {
            // Nobody is left to report to; the mount must not stay.
            let _ = run(LIMIT, Command::new("umount").arg("-l").arg(self.mountpoint()));
        }
        for range in &self.ranges {
            let _ = std::fs::remove_file(range);
        }
    }
}
