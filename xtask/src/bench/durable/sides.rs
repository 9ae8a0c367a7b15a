//! What is compared with what.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use steadfast_suite::kernel_ext4::{BackingDevice, KernelExt4Setup};
use steadfast_suite::mounted::{Mounting, TargetMedium};

const MIB: u64 = 1 << 20;
/// Bytes of a file system.
const SIZE: u64 = 1 << 30;
/// Bytes of a journal, and of one that is to be full soon.
const ROOMY: u64 = 128 * MIB;
const SMALL: u64 = 32 * MIB;
/// A folder in memory.
const MEMORY: &str = "/dev/shm";

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// File systems in memory.
    Memory,
    /// On a disk, our journal on memory; the kernel's on the same disk.
    Inside,
    /// On a disk, both journals on memory, data=journal.
    Outside,
    /// The same, after the log has been full for a while.
    Full,
    /// Ours in memory through FUSE, by the system calls that the kernel's gets.
    Mount,
    /// The same on a disk, our journal on memory; the kernel's on the same disk.
    MountDisk,
}

/// Who is timed.
#[derive(Debug)]
pub(super) struct Side {
    pub name: &'static str,
    pub what: SideKind,
}

#[derive(Debug)]
pub(super) enum SideKind {
    /// Ours: the words for the example.
    Ours(Vec<String>),
    /// Ours: `steadfast mount`.
    Mounted(Mounting),
    Kernel(KernelExt4Setup),
}

impl Side {
    pub fn is_ours(&self) -> bool {
        !matches!(self.what, SideKind::Kernel(_))
    }
}

/// Image files; gone when dropped.
#[derive(Debug)]
pub(super) struct Files {
    /// On the disk, all blocks written.
    ours: PathBuf,
    kernels: PathBuf,
    /// In memory.
    memory: PathBuf,
    journal: PathBuf,
    tmpfs: PathBuf,
    /// The program that mounts ours.
    steadfast: PathBuf,
}

impl Files {
    pub fn make(folder: &Path, steadfast: PathBuf) -> anyhow::Result<Files> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let here = |name: &str| folder.join(format!("durable-{}-{name}", std::process::id()));
        let there = |name: &str| {
            Path::new(MEMORY).join(format!("steadfast-durable-{}-{name}", std::process::id()))
        };
        let files = Files {
            ours: here("ours"),
            kernels: here("kernel"),
            memory: there("memory"),
            journal: there("journal"),
            tmpfs: there("tmpfs"),
            steadfast,
        };
        eprintln!("    writing two files of {} MiB in {}", SIZE / MIB, folder.display());
        // Blocks that the host has to find first would be timed with ours.
        for path in [&files.ours, &files.kernels] {
            let failed = || path.display().to_string();
            let mut file = std::fs::File::create(path).with_context(failed)?;
            let zeros = vec![0; MIB as usize];
            for _ in 0..SIZE / MIB {
                file.write_all(&zeros).with_context(failed)?;
            }
            file.sync_all().with_context(failed)?;
        }
        let tmpfs = std::fs::File::create(&files.tmpfs)?;
        tmpfs.set_len(SIZE)?;
        Ok(files)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in [&self.ours, &self.kernels, &self.memory, &self.journal, &self.tmpfs] {
            // One that was never made is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn ours(name: &'static str, words: &[&str], journal: Option<(&Path, u64)>) -> Side {
    let mut words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    if let Some((path, bytes)) = journal {
        words.extend(["--journal".to_owned(), path.display().to_string()]);
        words.extend(["--journal-mib".to_owned(), (bytes / MIB).to_string()]);
    }
    Side { name, what: SideKind::Ours(words) }
}

fn kernel(name: &'static str, on: BackingDevice, fast_commit: bool) -> Side {
    let kernel = KernelExt4Setup { on, fast_commit, journal: None, options: "noatime".to_owned() };
    Side { name, what: SideKind::Kernel(kernel) }
}

/// Ours through a mount: on memory with files in place, or on the disk with its journal on memory.
fn mounted(name: &'static str, files: &Files, place: TargetMedium, fast_commit: bool) -> Side {
    let on_disk = matches!(place, TargetMedium::Disk(_));
    let how = Mounting {
        binary: files.steadfast.clone(),
        place,
        journal: on_disk.then(|| (files.journal.clone(), ROOMY)),
        fast_commit,
        options: if on_disk { "data=journal" } else { "" }.to_owned(),
    };
    Side { name, what: SideKind::Mounted(how) }
}

impl Part {
    pub const ALL: [Part; 6] =
        [Part::Memory, Part::Inside, Part::Outside, Part::Full, Part::Mount, Part::MountDisk];

    /// Whether `--part` means this one: `mount` both that are mounted.
    pub fn is_meant(self, given: &str) -> bool {
        self.name() == given || given == "mount" && self == Part::MountDisk
    }

    pub fn name(self) -> &'static str {
        match self {
            Part::Memory => "memory",
            Part::Inside => "disk",
            Part::Outside => "external",
            Part::Full => "full",
            Part::Mount => "mount",
            Part::MountDisk => "mount-disk",
        }
    }

    /// What stands above the table.
    pub fn title(self) -> &'static str {
        match self {
            Part::Memory => "In memory: ours in place (dax=always), the kernel's on zram and loop",
            Part::Inside => "On a disk: our journal on memory (data=journal), the kernel's inside",
            Part::Outside => "On a disk: both journals on memory, data=journal (kernel's: zram)",
            Part::Full => "The same with a log of 32 MiB that has been full for a while",
            Part::Mount => "Mounted (FUSE), in memory: ours with dax=always, the kernel's as above",
            Part::MountDisk => "Mounted (FUSE), on a disk: our journal on memory (data=journal)",
        }
    }

    /// Ours first; the first of ours is the one that is compared.
    pub fn sides(self, files: &Files) -> Vec<Side> {
        let memory = files.memory.display().to_string();
        let disk = files.ours.display().to_string();
        let with = |bytes: u64| {
            let words = ["disk", &disk, "--data", "journal"];
            ours("ours", &words, Some((&files.journal, bytes)))
        };
        let external = |bytes: u64| {
            let on = BackingDevice::DirectLoop(files.kernels.clone());
            let options = "noatime,data=journal".to_owned();
            let kernel = KernelExt4Setup { on, fast_commit: false, journal: Some(bytes), options };
            Side { name: "zram", what: SideKind::Kernel(kernel) }
        };
        let tmpfs = || BackingDevice::Loop(files.tmpfs.clone());
        let direct = || BackingDevice::DirectLoop(files.kernels.clone());
        match self {
            Part::Memory | Part::Mount => {
                let range = || TargetMedium::Memory(files.memory.clone(), SIZE);
                let [fast, plain] = match self {
                    Part::Mount => [
                        mounted("fast commits", files, range(), true),
                        mounted("plain", files, range(), false),
                    ],
                    _ => [
                        ours("fast commits", &["memory", &memory, "--fast"], None),
                        ours("plain", &["memory", &memory], None),
                    ],
                };
                vec![
                    fast,
                    plain,
                    kernel("zram", BackingDevice::Zram(SIZE), false),
                    kernel("zram fc", BackingDevice::Zram(SIZE), true),
                    kernel("loop", tmpfs(), false),
                    kernel("loop fc", tmpfs(), true),
                ]
            }
            Part::Inside | Part::MountDisk => {
                let first = match self {
                    Part::MountDisk => {
                        mounted("ours", files, TargetMedium::Disk(files.ours.clone()), false)
                    }
                    _ => with(ROOMY),
                };
                vec![first, kernel("plain", direct(), false), kernel("fc", direct(), true)]
            }
            Part::Outside => vec![with(ROOMY), external(ROOMY)],
            Part::Full => vec![with(SMALL), external(SMALL)],
        }
    }

    /// Timed calls of each kind, and overwrites before: on a disk as many as can be waited for.
    /// The log is full after those before: each overwrite logs at least its block, so it has gone
    /// round twice.
    pub fn amounts(self, quick: bool) -> (u64, u64) {
        match self {
            _ if quick => (40, 0),
            Part::Memory => (8000, 0),
            Part::Inside | Part::Outside | Part::MountDisk => (2000, 0),
            Part::Mount => (4000, 0),
            Part::Full => (4000, 2 * SMALL / 4096),
        }
    }

    /// The one kind of call, if there is but one.
    pub fn only(self) -> Option<&'static str> {
        (self == Part::Full).then_some("overwrite")
    }

    /// How often as fast as the kernel's best a call is to be, and how many times its 99th
    /// percentile is to fit into the kernel's. Of a mount nothing is wanted: a call's trips to the
    /// daemon and back take longer than the kernel's call.
    pub fn goals(self, call: &str) -> (Option<f64>, Option<f64>) {
        match (self, call) {
            (Part::Memory, "overwrite") => (Some(5.0), None),
            (Part::Memory, "append" | "create" | "create-written") => (Some(3.0), None),
            (Part::Memory | Part::Mount | Part::MountDisk, _) => (None, None),
            (Part::Inside, _) => (Some(10.0), Some(50.0)),
            (Part::Outside | Part::Full, _) => (Some(3.0), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_means_both_that_are_mounted() {
        let meant = |given: &str| -> Vec<&str> {
            Part::ALL.into_iter().filter(|p| p.is_meant(given)).map(Part::name).collect()
        };
        assert_eq!(meant("mount"), ["mount", "mount-disk"]);
        assert_eq!(meant("mount-disk"), ["mount-disk"]);
        assert_eq!(meant("disk"), ["disk"]);
        assert!(meant("m").is_empty());
    }
}
