//! The memory of a mount's process, under many threads that do everything at once.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::bench::Bench;

const THREADS: u64 = 32;
/// What the process may have beside its cache and the pages of its program: with those, 13 MiB of a
/// release build and twice as many of this one, docs/mount.md's 64 MiB.
const BESIDE_MIB: u64 = 50;
/// The part of a shared file that is written and read.
const SPAN: u64 = 16 << 20;
const BUFFER: usize = 1 << 20;

/// Resident memory of a process in MiB, without the pages of its program: the most there ever was,
/// and now (proc_pid_status(5)).
fn resident_mib(process: Pid) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    let of = |key: &str| {
        let line = status.lines().find(|l| l.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
    };
    // What is read from the file of the program stays, once read.
    (of("VmHWM:") - of("RssFile:"), of("RssAnon:"))
}

fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// What one thread works on: a file of several, buffered, another past the kernel's cache, and a
/// folder of its own with small files.
struct Worker {
    seed: u64,
    shared: File,
    direct: File,
    folder: std::path::PathBuf,
    buffer: Vec<u8>,
    /// Where in the buffer what O_DIRECT takes begins.
    aligned: usize,
}

impl Worker {
    fn new(at: &Path, id: u64) -> Worker {
        let folder = at.join(format!("d{id}"));
        fs::create_dir_all(&folder).unwrap();
        let open = |number: u64, flags: rustix::fs::OFlags| {
            let mut how = OpenOptions::new();
            how.read(true).write(true).create(true).custom_flags(flags.bits() as i32);
            how.open(at.join(format!("f{}", number % 16))).unwrap()
        };
        let buffer = vec![id as u8; BUFFER + 4096];
        Worker {
            seed: 0x9e37_79b9_7f4a_7c15 ^ (id + 1),
            shared: open(id, rustix::fs::OFlags::empty()),
            direct: open(id + 7, rustix::fs::OFlags::DIRECT),
            folder,
            aligned: buffer.as_ptr().align_offset(4096),
            buffer,
        }
    }

    /// One of the files of its folder, which may be there.
    fn small(&mut self) -> std::path::PathBuf {
        self.folder.join(format!("n{}", next(&mut self.seed) % 400))
    }

    fn step(&mut self) -> std::io::Result<()> {
        let what = next(&mut self.seed);
        let most = [4096, 16384, 131_072, BUFFER as u64][(what >> 8) as usize % 4];
        let len = 1 + (next(&mut self.seed) % most) as usize;
        let at = next(&mut self.seed) % SPAN;
        let (page, pages) = (at / 4096 * 4096, len.next_multiple_of(4096));
        let own = self.aligned..self.aligned + pages;
        match what % 16 {
            0..=4 => self.shared.write_at(&self.buffer[..len], at).map(drop),
            5..=8 => self.shared.read_at(&mut self.buffer[..len], at).map(drop),
            9 | 10 => {
                let name = self.small();
                // OK to ignore: it need not be there.
                let _ = fs::remove_file(&name);
                fs::write(&name, &self.buffer[..len.min(20_000)])
            }
            11 => {
                for entry in fs::read_dir(&self.folder)? {
                    entry?.metadata()?;
                }
                Ok(())
            }
            12 => {
                let _ = fs::remove_file(self.small());
                Ok(())
            }
            13 => self.direct.write_at(&self.buffer[own], page).map(drop),
            14 => self.direct.read_at(&mut self.buffer[own], page).map(drop),
            _ if what & 0x3000_0000 == 0 => self.shared.sync_all(),
            _ => match File::open(self.small()) {
                Ok(file) => file.read_at(&mut self.buffer[..4096], 0).map(drop),
                Err(_) => Ok(()),
            },
        }
    }
}

/// Many threads at work, each for `steps` steps or until `is_over`.
fn load(at: &Path, steps: u64, is_over: &AtomicBool) {
    std::thread::scope(|scope| {
        for id in 0..THREADS {
            scope.spawn(move || {
                let mut worker = Worker::new(at, id);
                for _ in 0..steps {
                    if is_over.load(Ordering::Acquire) {
                        return;
                    }
                    worker.step().unwrap();
                }
            });
        }
    });
}

#[test]
fn a_mount_keeps_to_its_memory() {
    for data in ["ordered", "journal"] {
        let Some(b) = Bench::with_image("1g") else { return };
        b.good(&format!("mount disk.img m -o cache=16m,data={data}"));
        load(&b.at(), 200, &AtomicBool::new(false));
        let (most, now) = resident_mib(b.process());
        let limit = 16 + BESIDE_MIB + transport_mib(&b);
        assert!(most <= limit, "data={data}: {most} MiB at most, {now} MiB now");
        b.good("umount m");
    }
}

/// What its requests may have beside, as its status says.
fn transport_mib(b: &Bench) -> u64 {
    b.status()["transport"]["buffer_bytes_max"].as_u64().unwrap_or(0) >> 20
}

/// The same for an hour (`STEADFAST_SOAK`; `STEADFAST_SOAK_SECONDS` for so long), with the memory
/// of a small server.
#[test]
#[allow(clippy::print_stdout, reason = "a long run says how it goes")]
fn soak_memory_for_an_hour() {
    if std::env::var_os("STEADFAST_SOAK").is_none() {
        return;
    }
    let given = std::env::var("STEADFAST_SOAK_SECONDS").ok().and_then(|s| s.parse().ok());
    let seconds = given.unwrap_or(3600);
    let Some(b) = Bench::with_image("1g") else { return };
    b.good("mount disk.img m -o cache=96m");
    let (process, is_over) = (b.process(), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| load(&b.at(), u64::MAX, &is_over));
        while begun.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_secs(30.min(seconds)));
            let (most, now) = resident_mib(process);
            println!("{} s: {now} MiB, at most {most} MiB", begun.elapsed().as_secs());
        }
        is_over.store(true, Ordering::Release);
    });
    let (most, _) = resident_mib(process);
    assert!(most <= 96 + BESIDE_MIB + transport_mib(&b), "{most} MiB");
    b.good("umount m");
}
