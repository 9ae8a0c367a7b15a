//! The ioctls that FUSE carries: `chattr`, `lsattr`, projects, labels, and the shutdown that test
//! suites cut a mounted file system with.
//!
//! Who may change flags and projects the kernel checks before it asks, since 5.13, and by one
//! number only: that of its own width. Any other number comes to us from anybody who can open the
//! file for reading. So a caller of 64 bits has no numbers of 32 bits (as with the kernel's ext4),
//! and we check as the kernel does.

use steadfast_fuse_lowlevel::IoctlFlags;
use steadfast_vfs::{FsError, Ino, Result, Shutdown};

use super::Bridge;
use super::caller::Caller;
use super::inode_flags::{APPEND_ONLY, IMMUTABLE, JOURNAL_DATA, SYNCHRONOUS};

// Numbers: include/uapi/linux/fs.h; the size of the argument is part of them.
const GETFLAGS: u32 = 0x8008_6601;
const SETFLAGS: u32 = 0x4008_6602;
const GETVERSION: u32 = 0x8008_7601;
/// What kernels of 32 bits and callers of 32 bits call these by (FS_IOC32_*).
const OF_32_BITS: [(u32, u32); 3] =
    [(0x8004_6601, GETFLAGS), (0x4004_6602, SETFLAGS), (0x8004_7601, GETVERSION)];
const FSGETXATTR: u32 = 0x801c_581f;
const FSSETXATTR: u32 = 0x401c_5820;
const GETFSLABEL: u32 = 0x8100_9431;
const SETFSLABEL: u32 = 0x4100_9432;
/// As test suites send it (`XFS_IOC_GOINGDOWN`, `_IOR`): the number says that the kernel writes the
/// argument, so FUSE does not hand it on.
const SHUTDOWN_READ: u32 = 0x8004_587d;
/// The same with its argument (`_IOW`).
const SHUTDOWN: u32 = 0x4004_587d;

/// FS_IMMUTABLE_FL and FS_APPEND_FL.
const PROTECTED: u32 = IMMUTABLE | APPEND_ONLY;

/// FS_* flag of an inode, and FS_XFLAG_* of the same meaning.
const XFLAGS: [(u32, u32); 7] = [
    (IMMUTABLE, 0x8),     // immutable
    (APPEND_ONLY, 0x10),  // append only
    (SYNCHRONOUS, 0x20),  // every write is durable
    (0x40, 0x80),         // no dump
    (0x80, 0x40),         // no times of access
    (0x2000_0000, 0x200), // project inherited
    (0x200_0000, 0x8000), // used in place (DAX)
];

/// Bytes of `struct fsxattr`, and where in it the project is.
const FSXATTR_LEN: usize = 28;
const PROJECT_AT: usize = 12;
/// FS_XFLAG_HASATTR: shown, cannot be set.
const HAS_ATTRIBUTES: u32 = 0x8000_0000;
/// Bytes of a label's argument (`FSLABEL_MAX`).
const LABEL_LEN: usize = 256;

impl Bridge {
    /// Answers an ioctl: its data.
    pub(super) fn control(
        &self,
        ino: Ino,
        caller: Caller,
        command: u32,
        flags: IoctlFlags,
        data: &[u8],
    ) -> Result<Vec<u8>> {
        let number = || number_at(data, 0);
        match native(command, flags) {
            GETFLAGS => Ok(self.fs.inode_flags(ino)?.to_ne_bytes().to_vec()),
            SETFLAGS => {
                let wanted = number()?;
                self.check_may_set(ino, caller, wanted ^ self.fs.inode_flags(ino)?)?;
                self.fs.set_inode_flags(ino, wanted)?;
                self.flags_changed(ino)?;
                Ok(Vec::new())
            }
            GETVERSION => Ok(self.fs.getattr(ino)?.generation.to_ne_bytes().to_vec()),
            FSGETXATTR => {
                let flags = self.fs.inode_flags(ino)?;
                let project = self.fs.project(ino)?;
                let mut out = vec![0; FSXATTR_LEN];
                out[..4].copy_from_slice(&extended_flags(flags).to_ne_bytes());
                out[PROJECT_AT..PROJECT_AT + 4].copy_from_slice(&project.to_ne_bytes());
                Ok(out)
            }
            FSSETXATTR => {
                self.set_extended(ino, caller, number()?, number_at(data, PROJECT_AT)?)?;
                self.flags_changed(ino)?;
                Ok(Vec::new())
            }
            GETFSLABEL => {
                let mut label = self.fs.label()?;
                label.resize(LABEL_LEN, 0);
                Ok(label)
            }
            SETFSLABEL if !caller.administers() => {
                Err(FsError::NotPermitted { what: "naming a file system" })
            }
            SETFSLABEL => {
                let label = data.split(|b| *b == 0).next().unwrap_or_default();
                self.fs.set_label(label)?;
                Ok(Vec::new())
            }
            SHUTDOWN_READ | SHUTDOWN if !caller.administers() => {
                Err(FsError::NotPermitted { what: "shutting a file system down" })
            }
            SHUTDOWN_READ => {
                self.shut_down(Shutdown::Now)?;
                Ok(Vec::new())
            }
            SHUTDOWN => {
                let how = match number()? {
                    0 => Shutdown::Flush,
                    1 => Shutdown::FlushJournal,
                    2 => Shutdown::Now,
                    _ => return Err(FsError::Invalid { what: "how to shut down" }),
                };
                self.shut_down(how)?;
                Ok(Vec::new())
            }
            // ENOTTY: not an ioctl of ours.
            _ => Err(FsError::Host { errno: 25 }),
        }
    }

    /// Whether an ioctl makes a file immutable that is open for writing.
    pub(super) fn ends_writing(
        &self,
        ino: Ino,
        command: u32,
        flags: IoctlFlags,
        data: &[u8],
    ) -> bool {
        let wanted = number_at(data, 0).unwrap_or_default();
        let is_wanted = match native(command, flags) {
            SETFLAGS => wanted & IMMUTABLE != 0,
            FSSETXATTR => extended_flags(IMMUTABLE) & wanted != 0,
            _ => false,
        };
        is_wanted && self.writers.any_of(ino) && !self.writers.is_immutable(ino)
    }

    /// An inode's flags are others now. Also the time of change is.
    fn flags_changed(&self, ino: Ino) -> Result<()> {
        self.writers.set_immutable(ino, self.fs.inode_flags(ino)? & IMMUTABLE != 0);
        self.attributes_changed(ino);
        Ok(())
    }

    /// Refuses a change of an inode's flags, of which these are others, as the kernel does
    /// (`vfs_fileattr_set`, `fileattr_set_prepare`).
    fn check_may_set(&self, ino: Ino, caller: Caller, changed: u32) -> Result<()> {
        let what = if !caller.acts_for(self.fs.getattr(ino)?.uid) {
            "changing the flags of another user's inode"
        } else if changed & PROTECTED != 0 && !caller.protects() {
            "making an inode immutable or append-only, and taking that back"
        } else if changed & JOURNAL_DATA != 0 && !caller.journals_data() {
            "journalling a file's data"
        } else {
            return Ok(());
        };
        Err(FsError::NotPermitted { what })
    }

    /// Sets flags by their extended names, and the project.
    fn set_extended(&self, ino: Ino, caller: Caller, extended: u32, project: u32) -> Result<()> {
        let known = XFLAGS.iter().fold(HAS_ATTRIBUTES, |all, (_, x)| all | x);
        if extended & !known != 0 {
            let what = format!("the extended inode flags {:#x}", extended & !known);
            return Err(FsError::Unsupported { what });
        }
        let now = self.fs.inode_flags(ino)?;
        // Others have no extended name and stay.
        let mut wanted = now;
        for (flag, x) in XFLAGS {
            wanted = if extended & x != 0 { wanted | flag } else { wanted & !flag };
        }
        self.check_may_set(ino, caller, wanted ^ now)?;
        if project != self.fs.project(ino)? {
            if !caller.is_in_our_namespace() {
                return Err(FsError::Invalid { what: "a project from another user namespace" });
            }
            self.fs.set_project(ino, project)?;
        }
        if wanted != now { self.fs.set_inode_flags(ino, wanted) } else { Ok(()) }
    }

    fn shut_down(&self, how: Shutdown) -> Result<()> {
        tracing::warn!("{}: shut down by request ({how:?})", self.options.source);
        self.fs.shutdown(how)
    }
}

/// The number of the same ioctl for callers of 64 bits, if it is one of a caller of 32 bits.
fn native(command: u32, flags: IoctlFlags) -> u32 {
    let of_32_bits = || OF_32_BITS.iter().find(|(narrow, _)| *narrow == command);
    let is_narrow = flags.contains(IoctlFlags::OF_32_BITS);
    of_32_bits().filter(|_| is_narrow).map_or(command, |(_, native)| *native)
}

/// A number in an ioctl's argument.
fn number_at(data: &[u8], at: usize) -> Result<u32> {
    let bytes = data.get(at..at + 4).and_then(|b| b.try_into().ok());
    bytes.map(u32::from_ne_bytes).ok_or(FsError::Invalid { what: "ioctl argument" })
}

fn extended_flags(flags: u32) -> u32 {
    XFLAGS.iter().filter(|(f, _)| flags & f != 0).map(|(_, x)| x).fold(0, |all, x| all | x)
}

#[cfg(test)]
mod tests {
    use super::extended_flags;

    #[test]
    fn flags_have_their_extended_names() {
        assert_eq!(extended_flags(0x10 | 0x20 | 0x80000), 0x8 | 0x10);
        assert_eq!(extended_flags(0x200_0000), 0x8000);
    }
}
