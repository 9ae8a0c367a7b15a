//! A guest: Debian's kernel under QEMU's software emulation, for what this machine's kernel lacks
//! (md, persistent memory). It boots from an initramfs that is made for the job, runs one shell
//! script, and is gone. Nothing of it stays on this machine but `target/guest`. Several may run at
//! once.
//!
//! An emulated processor is many times slower than the real one, and not evenly: figures of one
//! guest may be compared with figures of the same run in the same guest, and with nothing else.

mod command;
mod folder;
mod initramfs;
mod kernel;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::{packages, step};

pub use command::run;
pub use folder::Folder;

/// What making and running a guest needs, and the Debian packages they come in.
const NEEDED: [(&str, &str); 6] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("modprobe", "kmod"),
    ("depmod", "kmod"),
    ("dpkg-deb", "dpkg"),
    ("setpriv", "util-linux"),
];
/// First words of the lines between which the script's output stands.
const BEGIN: &str = "guest-begin ";
const END: &str = "guest-end ";
/// Lines of the console that are shown when something went wrong.
const CONSOLE_LINES: usize = 15;

/// A job for a guest.
pub struct Guest<'a> {
    /// Kernel modules, each with its parameters: "brd rd_nr=4". What they need comes along.
    pub modules: &'a [&'a str],
    /// Programs of this machine, which are `/bin/NAME` there; their libraries come along.
    pub programs: &'a [PathBuf],
    /// What busybox's shell runs. Programs of busybox are there; /proc, /sys and /dev are mounted.
    /// A module that cannot be inserted is exit status 127, an NVDIMM without DAX 126.
    pub script: &'a str,
    /// Memory, in MiB. The initramfs is in it too.
    pub memory: u32,
    pub processors: u32,
    pub nvdimm: Option<GuestNvdimm>,
    /// Further arguments of QEMU.
    pub qemu: &'a [&'a str],
    /// After so long it is ended.
    pub limit: Duration,
}

/// Persistent memory of a guest: a file, whose bytes are the memory while it runs, and stay.
pub struct GuestNvdimm {
    /// It is made if it is not there, and gets the size if it has another one.
    pub file: PathBuf,
    /// A multiple of 128 is what Linux takes. There is no label area, so all of it is one
    /// namespace.
    pub mib: u32,
    /// The first 2 MiB are Linux's, who makes it a namespace for DAX at the first boot;
    /// `/dev/pmem0` begins behind them. Otherwise it is what Linux finds in it: `/dev/pmem0`, or
    /// `/dev/pmem0s` with a block translation table.
    pub dax: bool,
}

/// Modules with which a guest's NVDIMM is `/dev/pmem0`.
pub const NVDIMM_MODULES: [&str; 2] = ["nfit", "nd_pmem"];

/// What a guest said.
pub struct Answer {
    /// The kernel's release.
    pub kernel: String,
    /// The lines that the script wrote, errors too, without empty ones at the end.
    pub lines: Vec<String>,
    /// The script's exit status.
    pub status: i32,
}

impl Guest<'_> {
    /// Installs what is missing, boots, runs the script; `each` gets its lines as they come.
    ///
    /// # Errors
    /// If something cannot be had, or the guest ends without saying how the script ended: with the
    /// last lines of its console.
    pub fn run(&self, root: &Path, mut each: impl FnMut(&str)) -> anyhow::Result<Answer> {
        if !packages::install_these(&NEEDED)? {
            anyhow::bail!("the guest needs the packages above");
        }
        let kernel = folder::shared(root, kernel::fetch)?;
        let folder = Folder::new(root)?;
        let image = folder.path().join("initramfs");
        initramfs::write(&image, self, &kernel)?;
        if let Some(GuestNvdimm { file, mib, .. }) = &self.nvdimm {
            let mut open = File::options();
            let open = open.write(true).create(true).truncate(false).open(file);
            let sized = open.and_then(|file| file.set_len(u64::from(*mib) << 20));
            sized.with_context(|| format!("making {}", file.display()))?;
        }
        let console = folder.path().join("console");
        let mut answer = Answer { kernel: String::new(), lines: Vec::new(), status: -1 };
        let mut ended = false;
        let mut empty = 0;
        let mut qemu = self.command(&kernel, &image, &console);
        let outcome = step::run_lines(self.limit, &mut qemu, |line| {
            let line = line.trim_end_matches('\r');
            if let Some(release) = line.strip_prefix(BEGIN) {
                answer.kernel = release.to_owned();
            } else if let Some(status) = line.strip_prefix(END) {
                answer.status = status.parse().unwrap_or(-1);
                ended = true;
            } else if line.is_empty() {
                // Kept back: one stands before the end, and is none of the script's.
                empty += 1;
            } else {
                for line in std::iter::repeat_n("", std::mem::take(&mut empty)).chain([line]) {
                    each(line);
                    answer.lines.push(line.to_owned());
                }
            }
        });
        let outcome = outcome.map_err(|error| {
            let end = last_lines(&console);
            anyhow::anyhow!("the guest (QEMU, started by setpriv): {error:#}\n{end}")
        })?;
        anyhow::ensure!(
            outcome.good && ended,
            "the guest has ended too early\n{}",
            last_lines(&console)
        );
        folder.done()?;
        Ok(answer)
    }

    fn command(&self, kernel: &kernel::GuestKernel, image: &Path, console: &Path) -> Command {
        // It is killed when who started it is gone, however that ended: it has a process group
        // of its own, which Ctrl-C does not reach unless somebody sits at a terminal.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
            // Without the fast string instructions: QEMU emulates them byte by byte, and who
            // copies memory would choose them.
            .args(["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm", "-no-reboot"])
            .args(["-smp", &self.processors.to_string()])
            .args(["-display", "none", "-nodefaults", "-no-user-config"])
            .arg("-kernel")
            .arg(&kernel.image)
            .arg("-initrd")
            .arg(image)
            // Who measures the kernel is to see it at its best.
            .args(["-append", "console=ttyS0 loglevel=5 panic=-1 mitigations=off"])
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .args(["-serial", "stdio"])
            .args(self.memory_arguments())
            .args(self.qemu);
        qemu
    }

    fn memory_arguments(&self) -> Vec<String> {
        let memory = self.memory;
        let Some(GuestNvdimm { file, mib, .. }) = &self.nvdimm else {
            return vec!["-m".into(), format!("{memory}M")];
        };
        // In the list of an object's properties a comma is written twice.
        let file = file.display().to_string().replace(',', ",,");
        let most = memory + mib;
        let backend = format!("memory-backend-file,id=pmem,share=on,mem-path={file},size={mib}M");
        let arguments = [
            ("-m", format!("{memory}M,slots=1,maxmem={most}M")),
            ("-machine", "pc,nvdimm=on".into()),
            ("-object", backend),
            ("-device", "nvdimm,memdev=pmem".into()),
        ];
        arguments.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect()
    }
}

fn last_lines(console: &Path) -> String {
    let text = std::fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(CONSOLE_LINES);
    format!("the last lines of its console ({}):\n{}", console.display(), lines[from..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_nvdimm_has_a_slot_and_its_file() {
        let mut guest = Guest {
            modules: &[],
            programs: &[],
            script: "",
            memory: 1024,
            processors: 1,
            nvdimm: None,
            qemu: &[],
            limit: Duration::from_secs(1),
        };
        assert_eq!(guest.memory_arguments(), ["-m", "1024M"]);
        guest.nvdimm = Some(GuestNvdimm { file: "/a,b".into(), mib: 256, dax: true });
        let arguments = guest.memory_arguments();
        assert_eq!(arguments[1], "1024M,slots=1,maxmem=1280M");
        assert!(arguments[5].ends_with("mem-path=/a,,b,size=256M"), "{arguments:?}");
    }
}
