//! The kernel's file systems: how each is made, mounted and checked.

use std::path::Path;

use steadfast_host::Mount;

use crate::tool::{self, ToolOutput};
use crate::{PeerError, Result};

/// A file system of the host's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KernelFs {
    /// ext2: no journal.
    Ext2,
    /// ext3: a journal and block maps.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS: a log of the whole disk, with checkpoints.
    F2fs,
}

impl KernelFs {
    /// All of them.
    pub const ALL: [KernelFs; 6] = [
        KernelFs::Ext2,
        KernelFs::Ext3,
        KernelFs::Ext4,
        KernelFs::Xfs,
        KernelFs::Btrfs,
        KernelFs::F2fs,
    ];

    /// By its name in /proc/filesystems.
    pub fn of_name(name: &str) -> Option<KernelFs> {
        KernelFs::ALL.into_iter().find(|fs| fs.name() == name)
    }

    /// Its name in /proc/filesystems.
    pub fn name(self) -> &'static str {
        match self {
            KernelFs::Ext2 => "ext2",
            KernelFs::Ext3 => "ext3",
            KernelFs::Ext4 => "ext4",
            KernelFs::Xfs => "xfs",
            KernelFs::Btrfs => "btrfs",
            KernelFs::F2fs => "f2fs",
        }
    }

    /// The smallest device that its mkfs takes, in bytes.
    pub fn least_bytes(self) -> u64 {
        match self {
            KernelFs::Ext2 | KernelFs::Ext3 | KernelFs::Ext4 => 8 << 20,
            KernelFs::Xfs => 300 << 20,
            KernelFs::Btrfs | KernelFs::F2fs => 128 << 20,
        }
    }

    /// Whether its journal can be on another device.
    pub fn has_external_journal(self) -> bool {
        matches!(self, KernelFs::Ext3 | KernelFs::Ext4)
    }

    /// Whether power cuts are recovered from by a journal or a log, and not by a check.
    pub fn recovers_itself(self) -> bool {
        self != KernelFs::Ext2
    }

    /// Program that makes it, program that checks it, and the Debian package of both.
    fn programs(self) -> ([&'static str; 2], &'static str) {
        match self {
            KernelFs::Ext2 | KernelFs::Ext3 | KernelFs::Ext4 => (["mke2fs", "e2fsck"], "e2fsprogs"),
            KernelFs::Xfs => (["mkfs.xfs", "xfs_repair"], "xfsprogs"),
            KernelFs::Btrfs => (["mkfs.btrfs", "btrfs"], "btrfs-progs"),
            KernelFs::F2fs => (["mkfs.f2fs", "fsck.f2fs"], "f2fs-tools"),
        }
    }

    /// Whether this machine can make, mount and check it.
    ///
    /// # Errors
    /// What is missing: rights, a program, the kernel's part.
    pub fn available(self) -> Result<()> {
        // First: no program helps where the kernel has no such file system.
        tool::kernel_mounts(self.name())?;
        let (programs, package) = self.programs();
        for program in programs {
            if !tool::is_there(program) {
                return Err(PeerError::NoProgram { program, package });
            }
        }
        Ok(())
    }

    /// Makes the file system. Nothing is discarded, so that what the disk held before stays in its
    /// free blocks, as on a used disk; everything is made at once and nothing later by the kernel.
    pub(crate) fn make(self, disk: &Path, journal: Option<&Path>, words: &[String]) -> Result<()> {
        let mut line: Vec<String> = match self {
            KernelFs::Ext2 | KernelFs::Ext3 | KernelFs::Ext4 => {
                let eager = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
                let line = ["-q", "-F", "-t", self.name(), "-b", "4096", "-E", eager];
                line.map(str::to_owned).to_vec()
            }
            KernelFs::Xfs => ["-q", "-f", "-K"].map(str::to_owned).to_vec(),
            KernelFs::Btrfs => ["-q", "-f", "-K"].map(str::to_owned).to_vec(),
            KernelFs::F2fs => ["-q", "-f", "-t", "0"].map(str::to_owned).to_vec(),
        };
        if let Some(journal) = journal {
            let journal = journal.to_string_lossy().into_owned();
            let words = ["-q", "-F", "-b", "4096", "-O", "journal_dev", &journal];
            tool::succeed("mke2fs", &words.map(AsRef::as_ref))?;
            line.extend(["-J".to_owned(), format!("device={journal}")]);
        }
        line.extend(words.iter().cloned());
        line.push(disk.to_string_lossy().into_owned());
        let ([program, _], _) = self.programs();
        let line: Vec<&std::ffi::OsStr> = line.iter().map(AsRef::as_ref).collect();
        tool::succeed(program, &line)
    }

    /// Mounts it: its device, then that of its journal if there is one.
    pub(crate) fn mount(self, devices: &[&Path], at: &Path, options: &[&str]) -> Result<Mount> {
        let given = options.iter().filter(|o| !o.is_empty()).map(|o| (*o).to_owned());
        let journal = devices.get(1).map(|j| format!("journal_path={}", j.display()));
        let options: Vec<String> = given.chain(journal).collect();
        Ok(Mount::of(self.name(), devices[0], at, &options.join(","))?)
    }

    /// Its own check, which changes nothing. If there is damage, what it printed.
    pub(crate) fn check(self, disk: &Path, journal: Option<&Path>) -> Result<Option<String>> {
        let mut line: Vec<&std::ffi::OsStr> = match self {
            KernelFs::Ext2 | KernelFs::Ext3 | KernelFs::Ext4 => vec!["-fn".as_ref()],
            KernelFs::Xfs => vec!["-n".as_ref()],
            KernelFs::Btrfs => vec!["check".as_ref(), "--readonly".as_ref()],
            KernelFs::F2fs => vec!["-f".as_ref(), "--dry-run".as_ref()],
        };
        if let Some(journal) = journal {
            line.extend([std::ffi::OsStr::new("-j"), journal.as_os_str()]);
        }
        line.push(disk.as_os_str());
        let ([_, program], _) = self.programs();
        let said = tool::run(program, &line)?;
        Ok((said.code != Some(0)).then(|| said.text()))
    }

    /// What a machine does at its start with a file system that does not recover by itself: the
    /// repairs that need nobody (`e2fsck -p`). True: they were enough.
    pub(crate) fn preen(self, disk: &Path) -> Result<bool> {
        let ToolOutput { code, .. } = tool::run("e2fsck", &["-p".as_ref(), disk.as_os_str()])?;
        // 1: errors were corrected; 4 and more: left as they are.
        Ok(code.is_some_and(|code| code < 4))
    }

    /// What a person would do then: yes to everything.
    pub(crate) fn repair(self, disk: &Path) -> Result<()> {
        tool::run("e2fsck", &["-fy".as_ref(), disk.as_os_str()]).map(drop)
    }
}
