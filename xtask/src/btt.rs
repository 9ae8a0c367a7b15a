//! `cargo xtask btt`: sector namespaces of ours in the kernel's hands, and the kernel's in ours.
//!
//! Each case boots a guest with an NVDIMM. Ours: a file is formatted and written here, with sectors
//! discarded and one write cut short; the kernel's driver must find it and read the same, finish
//! the write, and bear a file system, which is read here again and given to e2fsck. The kernel's:
//! it makes one by itself, writes, and is switched off while it writes; we must read the same, find
//! each table whole, and finish what was interrupted. Where `ndctl` is, it checks both.

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::guest::{Folder, Guest, GuestNvdimm, NVDIMM_MODULES};
use crate::{conformance, packages, step};

/// For one guest; it takes ten seconds.
const LIMIT: Duration = Duration::from_secs(300);
const MIB: u32 = 128;
/// Programs that go into the guest, and those that look at what it has left.
const NEEDED: [(&str, &str); 4] = [
    ("mke2fs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("ndctl", "ndctl"),
];
/// The guest's ways to make a namespace, and to have it checked.
const FUNCTIONS: &str = "\
set -e
ended() { echo \"ended: $*\"; exit 1; }
same() { [ \"$1\" = \"$2\" ] || ended \"$3: $1 instead of $2\"; }
sum() { dd if=/dev/pmem0s bs=4096 skip=$1 count=$2 2>/dev/null | md5sum | cut -d' ' -f1; }
";
/// The namespace must not be in use then, and the guest has no daemon to ask.
const NDCTL: &str = "\
ndctl check-namespace --force namespace0.0 > /tmp/ndctl 2>&1 || \
    { cat /tmp/ndctl; ended 'ndctl check-namespace'; }
tail -1 /tmp/ndctl
";

/// Where something lies in the namespace, in pages of 4096 bytes, and what.
struct Piece {
    page: u64,
    bytes: Vec<u8>,
}

/// Runs all cases; whether they are as they must be.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    ensure!(packages::install_these(&NEEDED)?, "the packages above are needed");
    let build = ["build", "--package", "steadfast-devices", "--example", "btt"];
    let mut build = step::cargo(root, &build);
    build.args(["--message-format", "json"]).stderr(Stdio::inherit());
    let ours = conformance::executable(&build.output()?)?;
    let own = Folder::new(root)?;
    let all = BttTests { root, ours, folder: own.path().to_path_buf() };
    for sector in [4096, 512] {
        step::step(&format!("ours of {sector} bytes in the kernel"), || all.ours(sector))
            .then_some(())
            .context("a sector namespace of ours is not one for the kernel")?;
        step::step(&format!("the kernel's of {sector} bytes here"), || all.theirs(sector))
            .then_some(())
            .context("a sector namespace of the kernel's is not one here")?;
    }
    own.done()?;
    Ok(true)
}

struct BttTests<'a> {
    root: &'a Path,
    /// The example of the crate `devices`.
    ours: PathBuf,
    folder: PathBuf,
}

impl BttTests<'_> {
    fn ours(&self, sector: u64) -> anyhow::Result<bool> {
        let image = self.fresh()?;
        let text = numbers(1, 60_000);
        let pages = text.len() as u64 / 4096;
        let mut pieces = vec![
            Piece { page: 0, bytes: text.clone() },
            Piece { page: 3, bytes: numbers(7, 2000) },
            Piece { page: 31_000, bytes: numbers(5, 900) },
        ];
        self.btt(&["format"], &image, &[&sector.to_string()], None)?;
        let mut model = vec![0; 31_100 * 4096];
        for piece in &mut pieces {
            // Whole sectors are written.
            piece.bytes.resize(piece.bytes.len().next_multiple_of(sector as usize), 0);
            self.btt(&["write"], &image, &[&(piece.page * 4096).to_string()], Some(&piece.bytes))?;
            let at = (piece.page * 4096) as usize;
            model[at..at + piece.bytes.len()].copy_from_slice(&piece.bytes);
        }
        // Of 512 bytes they stay as they are.
        self.btt(&["discard"], &image, &["20480", "8192"], None)?;
        if sector == 4096 {
            model[20_480..28_672].fill(0);
        }
        let cut = vec![0x55; sector as usize];
        self.btt(&["cut"], &image, &["8192"], Some(&cut))?;
        model[8192..8192 + cut.len()].copy_from_slice(&cut);
        let report = self.btt(&["check"], &image, &[], None)?;
        let report = String::from_utf8_lossy(&report).into_owned();
        ensure!(report.contains("interrupted: 1,"), "the write was not cut:\n{report}");
        let (first, far) = (md5(&model[..(pages * 4096) as usize])?, md5(&model[31_000 * 4096..])?);
        let script = format!(
            "{FUNCTIONS}
            same $(cat /sys/block/pmem0s/queue/logical_block_size) {sector} 'sector size'
            same $(sum 0 {pages}) {first} 'what was written here'
            same $(sum 31000 100) {far} 'what was written far away'
            {NDCTL}
            mke2fs -q -t ext4 /dev/pmem0s
            mount -t ext4 /dev/pmem0s /tmp/mnt
            seq 1 200000 > /tmp/mnt/numbers
            umount /tmp/mnt"
        );
        self.boot(&image, &script)?;
        self.check(&image)?;
        let size = String::from_utf8(self.btt(&["size"], &image, &[], None)?)?;
        let disk = self.folder.join("btt-disk.img");
        std::fs::write(&disk, self.btt(&["read"], &image, &["0", size.trim()], None)?)?;
        ensure!(
            step::run(Command::new("e2fsck").arg("-fn").arg(&disk).stdout(Stdio::null()))?,
            "e2fsck of {}",
            disk.display()
        );
        let mut cat = Command::new("debugfs");
        let cat = cat.args(["-R", "cat /numbers"]).arg(&disk).output()?;
        ensure!(cat.stdout == numbers(1, 200_000), "the file is not as it was written");
        std::fs::remove_file(&disk)?;
        Ok(true)
    }

    fn theirs(&self, sector: u64) -> anyhow::Result<bool> {
        let image = self.fresh()?;
        let uuid = "8d9d2a55-9a5c-4b6e-9f43-6a2c6a1f0b11";
        let script = format!(
            "{FUNCTIONS}
            cd /sys/bus/nd
            echo namespace0.0 > drivers/nd_pmem/unbind
            echo {uuid} > devices/btt0.0/uuid
            echo {sector} > devices/btt0.0/sector_size
            echo namespace0.0 > devices/btt0.0/namespace
            echo btt0.0 > drivers/nd_pmem/bind
            [ -b /dev/pmem0s ] || ended 'no /dev/pmem0s'
            put() {{ dd of=/dev/pmem0s bs=4096 conv=sync seek=$1 oflag=direct 2>/dev/null; }}
            seq 1 60000 | put 0
            seq 7 2000 | put 3
            seq 5 900 | put 31000
            while :; do seq 1 20000 | put 1000; seq 2 20000 | put 1000; done &
            sleep 2"
        );
        self.boot(&image, &script)?;
        self.same_layout(&image, sector)?;
        let report = self.check(&image)?;
        ensure!(report.contains(uuid), "another UUID:\n{report}");
        ensure!(report.contains(&format!("sector: {sector},")), "other sectors:\n{report}");
        let mut model = padded(numbers(1, 60_000));
        let over = padded(numbers(7, 2000));
        model[3 * 4096..][..over.len()].copy_from_slice(&over);
        let len = model.len().to_string();
        let got = self.btt(&["read"], &image, &["0", &len], None)?;
        ensure!(got == model, "what the kernel wrote is not what is read here");
        let far = padded(numbers(5, 900));
        let at = (31_000 * 4096).to_string();
        let got = self.btt(&["read"], &image, &[&at, &far.len().to_string()], None)?;
        ensure!(got == far, "what the kernel wrote far away is not what is read here");
        // What was under way is, sector by sector, of one of two writes.
        let (one, other) = (padded(numbers(1, 20_000)), padded(numbers(2, 20_000)));
        let len = one.len().min(other.len());
        let at = (1000 * 4096).to_string();
        let got = self.btt(&["read"], &image, &[&at, &len.to_string()], None)?;
        let size = sector as usize;
        for n in 0..len / size {
            let of = |bytes: &[u8]| got[n * size..][..size] == bytes[n * size..][..size];
            ensure!(of(&one) || of(&other), "sector {n} of what was under way is torn");
        }
        // And the kernel takes it back.
        self.btt(&["write"], &image, &["0"], Some(&over))?;
        let sum = md5(&over)?;
        let pages = over.len() / 4096;
        self.boot(&image, &format!("{FUNCTIONS}\nsame $(sum 0 {pages}) {sum} 'ours'\n{NDCTL}"))?;
        Ok(true)
    }

    /// Of the same size we make the same: the info blocks differ in UUID and checksum only.
    fn same_layout(&self, image: &Path, sector: u64) -> anyhow::Result<()> {
        let ours = self.fresh_named("btt-ours.img")?;
        self.btt(&["format"], &ours, &[&sector.to_string()], None)?;
        let mut infos = [vec![0; 4096], vec![0; 4096]];
        for (file, info) in [image, &ours].into_iter().zip(&mut infos) {
            std::fs::File::open(file)?.read_exact_at(info, 4096)?;
            info[16..32].fill(0);
            info[4088..].fill(0);
        }
        std::fs::remove_file(&ours)?;
        ensure!(infos[0] == infos[1], "the kernel divides the memory in another way");
        Ok(())
    }

    /// A file for an NVDIMM, full of zeros.
    fn fresh(&self) -> anyhow::Result<PathBuf> {
        self.fresh_named("btt.img")
    }

    fn fresh_named(&self, name: &str) -> anyhow::Result<PathBuf> {
        let image = self.folder.join(name);
        drop(std::fs::remove_file(&image));
        std::fs::File::create(&image)?.set_len(u64::from(MIB) << 20)?;
        Ok(image)
    }

    /// Runs the example: its output.
    fn btt(
        &self,
        command: &[&str],
        image: &Path,
        args: &[&str],
        input: Option<&[u8]>,
    ) -> anyhow::Result<Vec<u8>> {
        let mut child = Command::new(&self.ours)
            .args(command)
            .arg(image)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("no standard input")?;
        stdin.write_all(input.unwrap_or_default())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        let said = || String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{command:?} of {}: {}", image.display(), said());
        Ok(output.stdout)
    }

    fn check(&self, image: &Path) -> anyhow::Result<String> {
        Ok(String::from_utf8(self.btt(&["check"], image, &[], None)?)?)
    }

    fn boot(&self, image: &Path, script: &str) -> anyhow::Result<()> {
        let mut programs = Vec::new();
        for name in ["mke2fs", "ndctl"] {
            programs.push(packages::find(name).with_context(|| format!("{name} is not there"))?);
        }
        let mut modules = NVDIMM_MODULES.to_vec();
        modules.push("ext4");
        let script = format!("mkdir -p /tmp/mnt\n{script}");
        let guest = Guest {
            modules: &modules,
            programs: &programs,
            script: &script,
            memory: 512,
            processors: 2,
            nvdimm: Some(GuestNvdimm { file: image.into(), mib: MIB, dax: false }),
            qemu: &[],
            limit: LIMIT,
        };
        let answer = guest.run(self.root, |line| println!("    {line}"))?;
        ensure!(answer.status == 0, "the guest's exit status is {}", answer.status);
        Ok(())
    }
}

/// The lines that `seq` prints.
fn numbers(from: u32, to: u32) -> Vec<u8> {
    (from..=to).map(|n| format!("{n}\n")).collect::<String>().into_bytes()
}

/// With zeros up to a whole page, as `dd conv=sync` does.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    bytes
}

fn md5(bytes: &[u8]) -> anyhow::Result<String> {
    let mut child = Command::new("md5sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all(bytes)?;
    drop(stdin);
    let output = String::from_utf8(child.wait_with_output()?.stdout)?;
    Ok(output.split_whitespace().next().context("md5sum said nothing")?.to_owned())
}
