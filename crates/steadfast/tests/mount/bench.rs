//! A folder with an image, a mount point and the program.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::time::{Duration, Instant};

use steadfast_host::Folder;

/// How long a program may take with its end: what hangs in the kernel, no signal ends.
const LIMIT: Duration = Duration::from_secs(90);

/// Everything of one test; what is still mounted at its end is taken away.
pub struct Bench {
    folder: Folder,
}

impl Bench {
    /// `None`, said aloud: no FUSE here, or not root.
    #[allow(clippy::print_stdout, reason = "a test that did not run says so")]
    pub fn new() -> Option<Bench> {
        let root = rustix::process::geteuid().is_root();
        if !root || std::fs::File::open("/dev/fuse").is_err() {
            println!("SKIPPED: needs root and /dev/fuse");
            return None;
        }
        let folder = Folder::new("steadfast-test-").unwrap();
        std::fs::create_dir(folder.path().join("m")).unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        Some(Bench { folder })
    }

    /// With an ext4 image of `size`, made by mke2fs.
    pub fn with_image(size: &str) -> Option<Bench> {
        let b = Bench::new()?;
        b.make("disk.img", size);
        Some(b)
    }

    pub fn make(&self, image: &str, size: &str) {
        let out = self.command("mke2fs", &["-q", "-t", "ext4", image, size]);
        assert!(out.status.success(), "{}", text(&out.stderr));
    }

    /// A path in the test's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The mount point.
    pub fn at(&self) -> PathBuf {
        self.path("m")
    }

    /// Runs another program in the test's folder; words as they are.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "60", program]).args(arguments);
        command.env("STEADFAST_RUNTIME_DIR", self.path("run")).current_dir(self.folder.path());
        steadfast_suite::output(LIMIT, &mut command).unwrap()
    }

    /// Runs the program; words separated by blanks.
    pub fn run(&self, line: &str) -> Output {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.command(env!("CARGO_BIN_EXE_steadfast"), &words)
    }

    /// Runs it; it must succeed. Its standard output.
    pub fn good(&self, line: &str) -> String {
        let out = self.run(line);
        assert!(out.status.success(), "{line}: {:?}\n{}", out.status, text(&out.stderr));
        text(&out.stdout)
    }

    /// Runs it; it must fail with `status`. Its standard error.
    pub fn bad(&self, line: &str, status: i32) -> String {
        let out = self.run(line);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{line}\n{said}");
        said
    }

    /// The process that serves the mount.
    pub fn process(&self) -> rustix::process::Pid {
        let pid = self.status()["pid"].as_i64().unwrap();
        rustix::process::Pid::from_raw(pid as i32).unwrap()
    }

    /// Stops the mount's process; no thread of it runs afterwards: one that read a request on its
    /// way would hold who asked for it, whom then no signal ends (fuse/dev.c, request_wait_answer).
    pub fn stopped(&self) -> rustix::process::Pid {
        let process = self.process();
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
        let threads = format!("/proc/{}/task", process.as_raw_nonzero());
        until("each thread stops", || {
            std::fs::read_dir(&threads).unwrap().all(|thread| {
                let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
                stat.rsplit(") ").next().unwrap().starts_with('T')
            })
        });
        process
    }

    /// The mount's status.
    pub fn status(&self) -> serde_json::Value {
        let document: serde_json::Value =
            serde_json::from_str(&self.good("status m --json")).unwrap();
        document["mounts"][0].clone()
    }

    /// Asks the kernel for an ioctl(2) on a file or folder; `argument` is a list for Perl's pack.
    /// The argument afterwards in hexadecimal digits, or the error in words.
    pub fn ioctl(&self, path: &str, number: u64, argument: &str) -> Result<String, String> {
        let script = format!(
            "my $a = pack({argument}); sysopen(D, $ARGV[0], 0) or die \"open: $!\";
            defined(ioctl(D, {number:#x}, $a)) or die \"$!\\n\"; print unpack('H*', $a)"
        );
        let out = self.command("perl", &["-e", &script, path]);
        if out.status.success() { Ok(text(&out.stdout)) } else { Err(text(&out.stderr)) }
    }

    /// Shuts the mount down (XFS_IOC_GOINGDOWN): 0 flush, 1 the journal only, 2 at once.
    pub fn shut_down(&self, how: u32) {
        self.ioctl("m", 0x4004_587d, &format!("'L', {how}")).unwrap();
    }

    /// What debugfs says to a request about the image.
    pub fn debugfs(&self, request: &str) -> String {
        text(&self.command("debugfs", &["-R", request, "disk.img"]).stdout)
    }

    pub fn e2fsck_is_clean(&self, image: &str) {
        let out = self.command("e2fsck", &["-fn", image]);
        assert!(out.status.success(), "{}", text(&out.stdout));
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let mounted = || {
            let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            table.contains(&format!(" {} ", self.at().display()))
        };
        for _ in 0..3 {
            if !mounted() {
                break;
            }
            let _ = rustix::mount::unmount(self.at(), rustix::mount::UnmountFlags::DETACH);
        }
    }
}

/// Waits until `done`, ten seconds at most.
pub fn until(what: &str, done: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < end, "{what}: not within ten seconds");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a process, for as long as a program may take: how it ended.
pub fn has_ended(process: &mut Child) -> ExitStatus {
    let ended = steadfast_suite::ended(process, LIMIT).unwrap();
    ended.unwrap_or_else(|| panic!("process {} has not ended in {LIMIT:?}", process.id()))
}

/// Whether a process is there (a zombie is not).
pub fn lives(pid: rustix::process::Pid) -> bool {
    let stat = Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("stat");
    std::fs::read_to_string(stat).is_ok_and(|s| !s.contains(") Z "))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
