//! The stack host as a person uses it: started, killed, asked, and its files written to. Needs
//! FUSE; loop devices need root.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use steadfast_host::Folder;

#[path = "serve/checksums.rs"]
mod checksums;
#[path = "serve/degraded.rs"]
mod degraded;
#[path = "serve/files.rs"]
mod files;
#[path = "serve/foreign.rs"]
mod foreign;
#[path = "serve/full.rs"]
mod full;
#[path = "serve/kernel.rs"]
mod kernel;
#[path = "serve/kinds.rs"]
mod kinds;
#[path = "serve/metrics.rs"]
mod metrics;
#[path = "serve/mounts.rs"]
mod mounts;
#[path = "serve/restart.rs"]
mod restart;
#[path = "serve/retired.rs"]
mod retired;
#[path = "serve/silent.rs"]
mod silent;
#[path = "serve/socket.rs"]
mod socket;
#[path = "serve/spares.rs"]
mod spares;
#[path = "serve/systemd.rs"]
mod systemd;
#[path = "serve/top.rs"]
mod top;

/// A folder with images and a configuration, and perhaps a host that runs.
struct Desk {
    folder: Folder,
    /// Where the configuration is in it.
    config: &'static str,
    host: Option<Child>,
}

impl Desk {
    fn new(images: &[&str], config: &str) -> Desk {
        let folder = Folder::new("steadfast-test-").unwrap();
        let desk = Desk { folder, config: "stack.toml", host: None };
        for image in images {
            File::create(desk.path().join(image)).unwrap().set_len(16 << 20).unwrap();
        }
        let devices: String =
            images.iter().map(|image| format!("[device.{image}]\npath = \"{image}\"\n")).collect();
        std::fs::write(desk.path().join("stack.toml"), devices + config).unwrap();
        desk
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Two hosts that run: the second one's mirror `d10` has the image `a`, and `b` of the first
    /// one's tree, which fails or is silent with it.
    fn with_a_leg_of_another(images: &[&str]) -> (Desk, Desk) {
        let mut far = Desk::new(&["b"], "");
        far.start();
        let b = far.tree().join("dsk/b");
        let config = format!(
            "[device.b]\npath = \"{}\"\n[volume.d10]\ncomponents = [\"a\", \"b\"]\n",
            b.display()
        );
        let mut desk = Desk::new(images, &config);
        desk.start();
        (far, desk)
    }

    fn tree(&self) -> PathBuf {
        self.path().join("tree")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.current_dir(self.path()).env("STEADFAST_RUNTIME_DIR", self.path().join("run"));
        command.env_remove("STEADFAST_SOCKET");
        command
    }

    /// Starts a host in the foreground, and waits until it answers.
    fn start(&mut self) {
        let log = OpenOptions::new().create(true).append(true).open(self.path().join("log"));
        let mut command = self.command();
        command.args(["serve", "-f", self.config, "--tree", "tree"]);
        self.host = Some(command.stderr(log.unwrap()).stdin(Stdio::null()).spawn().unwrap());
        self.wait_for_an_answer();
    }

    fn wait_for_an_answer(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.path().join("run/host.socket").exists()
            || self.run("host status").status.code() == Some(2)
        {
            assert!(Instant::now() < until, "no host: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// As a power cut of the process.
    fn kill(&mut self) {
        let mut host = self.host.take().unwrap();
        host.kill().unwrap();
        has_ended(&mut host);
    }

    fn stop(&mut self) {
        self.good("host stop");
        let status = has_ended(&mut self.host.take().unwrap());
        assert!(status.success(), "{status:?}: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("log")).unwrap_or_default()
    }

    fn run(&self, line: &str) -> Output {
        let mut command = self.command();
        steadfast_suite::output(LIMIT, command.args(line.split_whitespace())).unwrap()
    }

    fn good(&self, line: &str) -> String {
        let out = self.run(line);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{line}: {:?}\n{errors}\n{}", out.status, self.log());
        String::from_utf8(out.stdout).unwrap()
    }

    fn bad(&self, line: &str, status: i32, says: &str) {
        let out = self.run(line);
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(status), "{line}\n{text}");
        assert!(text.contains(says), "{line}\n{text}");
    }

    /// Asks the host by its socket.
    fn ask(&self, request: Value) -> Value {
        let mut socket = UnixStream::connect(self.path().join("run/host.socket")).unwrap();
        writeln!(socket, "{request}").unwrap();
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The same, and it is done.
    fn done(&self, request: Value) -> Value {
        let answer = self.ask(request);
        assert_eq!(answer["ok"], true, "{answer}\n{}", self.log());
        answer
    }

    fn status(&self) -> Value {
        let out = self.run("host status --json");
        serde_json::from_slice(&out.stdout).unwrap()
    }

    fn volume(&self, name: &str) -> Value {
        let status = self.status();
        let volumes = status["volumes"].as_array().unwrap();
        volumes.iter().find(|v| v["name"] == name).cloned().unwrap_or_default()
    }

    /// Waits until every leg of a mirror holds everything.
    fn wait_until_whole(&self, name: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let volume = self.volume(name);
            let legs = volume["mirror"]["legs"].as_array().cloned().unwrap_or_default();
            if !legs.is_empty() && legs.iter().all(|leg| leg["state"] == "Okay") {
                return;
            }
            assert!(Instant::now() < until, "{volume:#}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A file of the tree, for reading and writing.
    fn file(&self, path: &str) -> File {
        let path = self.tree().join(path);
        OpenOptions::new().read(true).write(true).open(path).unwrap()
    }

    fn read(&self, path: &str, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        File::open(self.tree().join(path)).unwrap().read_exact_at(&mut bytes, at).unwrap();
        bytes
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // A test that failed has not detached them, and once the tree is gone nobody knows whose
        // they were.
        let of_the_tree = |file: &str| Path::new(file.trim()).starts_with(self.tree());
        for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
            let file = std::fs::read_to_string(entry.path().join("loop/backing_file"));
            if file.is_ok_and(|file| of_the_tree(&file)) {
                let device = Path::new("/dev").join(entry.file_name());
                let _ = Command::new("losetup").arg("-d").arg(device).status();
            }
        }
        if let Some(mut host) = self.host.take() {
            let _ = host.kill();
            let _ = steadfast_suite::ended(&mut host, LIMIT);
        }
        let _ = Command::new("umount").arg("-l").arg(self.tree()).stderr(Stdio::null()).status();
    }
}

/// How long a command may take, and the end of a host.
const LIMIT: Duration = Duration::from_secs(300);

/// Waits for the end of a process: how it ended.
fn has_ended(process: &mut Child) -> ExitStatus {
    let ended = steadfast_suite::ended(process, LIMIT).unwrap();
    ended.unwrap_or_else(|| panic!("process {} has not ended in {LIMIT:?}", process.id()))
}

/// Bytes that show where they are.
fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|n| (n as u8).wrapping_mul(31).wrapping_add((n >> 8) as u8 ^ seed)).collect()
}
