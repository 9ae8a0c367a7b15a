//! Work whose fsyncs the kernel makes fast commits of, and what a tree looks like afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use steadfast_block::rng::Rng;

/// A file as others see it. Of directories only what a kernel replays as it was.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    mode: u32,
    size: u64,
    links: u64,
    owner: u32,
    changed: (i64, i64),
    blocks: u64,
    contents: Vec<u8>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Seen { mode, size, links, owner, changed, blocks, contents } = self;
        let sum = contents.iter().fold(0u64, |sum, b| sum.wrapping_mul(31) + u64::from(*b));
        write!(f, "{mode:o} of {owner}, {size} bytes in {blocks} sectors, {links} links, ")?;
        write!(f, "changed at {changed:?}, contents {sum:x}")
    }
}

/// Everything below a folder, by its path there.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let (mut seen, mut left) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            let name = path.strip_prefix(root).unwrap().to_path_buf();
            if meta.is_dir() {
                left.push(path);
                let nothing = Seen {
                    mode: meta.mode(),
                    size: 0,
                    links: 0,
                    owner: meta.uid(),
                    changed: (0, 0),
                    blocks: 0,
                    contents: Vec::new(),
                };
                seen.insert(name, nothing);
                continue;
            }
            let contents = fs::read(&path).unwrap();
            let file = Seen {
                mode: meta.mode(),
                size: meta.len(),
                links: meta.nlink(),
                owner: meta.uid(),
                changed: (meta.ctime(), meta.ctime_nsec()),
                blocks: meta.blocks(),
                contents,
            };
            seen.insert(name, file);
        }
    }
    seen
}

/// Makes a file, or what stands in a directory, durable.
pub fn sync(path: &Path) {
    File::open(path).unwrap().sync_all().unwrap();
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(seed * 2 + 1) >> 3) as u8 | 1).collect()
}

/// Files and directories that a full commit holds.
pub fn prepare(root: &Path) {
    for n in 0..6u64 {
        let folder = root.join(format!("d{}", n % 3));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("old{n}")), bytes(n, 30_000)).unwrap();
    }
    assert!(Command::new("sync").arg("-f").arg(root).status().unwrap().success());
}

fn random_file(rng: &mut Rng, names: &[PathBuf]) -> Option<PathBuf> {
    (!names.is_empty()).then(|| names[rng.below(names.len() as u64) as usize].clone())
}

fn allocate(file: &File, mode: &str, at: u64, len: u64) {
    // Through util-linux: the mode is an option there.
    let target = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = fs::read_link(target).unwrap();
    let mut command = Command::new("fallocate");
    command.args(mode.split_whitespace());
    command.args(["-o", &at.to_string(), "-l", &len.to_string()]).arg(path);
    assert!(command.status().unwrap().success());
}

/// A row of operations. One that writes is followed by an fsync: others do not make its data
/// durable. At the end one makes all of them durable.
pub fn work(root: &Path, seed: u64, operations: u64) {
    let mut rng = Rng::new(seed);
    for n in 0..operations {
        let names: Vec<PathBuf> = tree(root)
            .into_iter()
            .filter(|(_, seen)| seen.mode & 0o170_000 == 0o100_000)
            .map(|(name, _)| root.join(name))
            .collect();
        let folder = root.join(format!("d{}", rng.below(3)));
        let new = folder.join(format!("n{n}-{}", "x".repeat(rng.below(60) as usize)));
        let some = random_file(&mut rng, &names);
        let (mut touched, mut durable) = (new.clone(), true);
        match (rng.below(9), some) {
            (0, _) | (_, None) => fs::write(&new, bytes(n, rng.below(40_000) as usize)).unwrap(),
            (1, Some(old)) => {
                fs::rename(old, &new).unwrap();
                durable = rng.percent(50);
            }
            (2, Some(old)) => {
                fs::hard_link(old, &new).unwrap();
                durable = rng.percent(50);
            }
            (3, Some(old)) => {
                fs::remove_file(old).unwrap();
                fs::write(&new, bytes(n, 100)).unwrap();
            }
            (4, Some(old)) => {
                let at = rng.below(100_000);
                let file = OpenOptions::new().write(true).open(&old).unwrap();
                file.write_all_at(&bytes(n, 1 + rng.below(9000) as usize), at).unwrap();
                touched = old;
            }
            (5, Some(old)) => {
                let file = OpenOptions::new().write(true).open(&old).unwrap();
                file.set_len(rng.below(60_000)).unwrap();
                touched = old;
            }
            (6, Some(old)) => {
                let file = OpenOptions::new().write(true).open(&old).unwrap();
                allocate(&file, "-n", 4096 * rng.below(20), 4096 * (1 + rng.below(5)));
                touched = old;
            }
            (7, Some(old)) => {
                let file = OpenOptions::new().write(true).open(&old).unwrap();
                allocate(&file, "-p", rng.below(50_000), 1 + rng.below(30_000));
                touched = old;
            }
            (_, Some(old)) => {
                let mode = 0o600 + rng.below(64) as u32;
                fs::set_permissions(&old, fs::Permissions::from_mode(mode)).unwrap();
                touched = old;
                durable = rng.percent(50);
            }
        }
        if durable {
            sync(&touched);
        }
    }
    let last = root.join("last");
    fs::write(&last, bytes(seed, 5000)).unwrap();
    sync(&last);
}
