//! A host on image files, that can be killed and started again.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use steadfast_host::Folder;

use super::{PROGRAM, text};

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(300);
/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Host {
    folder: Folder,
    process: Option<Child>,
}

impl Host {
    /// Of slices with these names and sizes.
    pub fn new(slices: &[(&str, u64)]) -> Host {
        let folder = Folder::new("steadfast-test-").unwrap();
        let mut config = String::new();
        for (name, bytes) in slices {
            let image = folder.path().join(format!("{name}.img"));
            std::fs::File::create(&image).unwrap().set_len(*bytes).unwrap();
            config += &format!("[device.{name}]\npath = \"{}\"\n", image.display());
        }
        std::fs::write(folder.path().join("stack.toml"), config).unwrap();
        std::fs::create_dir(folder.path().join("tree")).unwrap();
        let mut host = Host { folder, process: None };
        host.start();
        host
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file of the tree.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join("tree").join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path().join("socket")
    }

    pub fn start(&mut self) {
        let mut options = std::fs::File::options();
        let log = options.create(true).append(true).open(self.path().join("log")).unwrap();
        let mut serve = Command::new(PROGRAM);
        serve.args(["serve", "-f", "stack.toml", "--tree", "tree"]).arg("--socket");
        serve.arg(self.socket()).current_dir(self.path());
        serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(serve.spawn().unwrap());
        self.until("it answers", |host| host.run("metastat").status.success());
    }

    /// As by a power failure: nothing is closed.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            steadfast_suite::ended(&mut process, LIMIT).unwrap().expect("it ends when killed");
        }
        // What is left of the mount answers nobody.
        let _ = Command::new("umount").arg("-l").arg(self.path().join("tree")).output();
    }

    /// Waits until something is so.
    pub fn until(&self, what: &str, is_so: impl Fn(&Host) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            let log = std::fs::read_to_string(self.path().join("log")).unwrap_or_default();
            assert!(start.elapsed() < PATIENCE, "waited for: {what}\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Until every submirror is Okay.
    pub fn until_in_sync(&self) {
        let okay = |host: &Host| {
            let shown = host.good("metastat");
            let states = shown.lines().filter(|line| line.contains("State:"));
            states.into_iter().all(|line| line.contains("Okay"))
        };
        self.until("all is in sync", okay);
    }

    /// Runs a command of Solaris.
    pub fn run(&self, line: &str) -> Output {
        let mut command = Command::new(PROGRAM);
        command.arg("svm").args(line.split_whitespace()).current_dir(self.path());
        steadfast_suite::output(LIMIT, command.env("STEADFAST_SOCKET", self.socket())).unwrap()
    }

    /// Runs one of ours.
    pub fn ours(&self, line: &str) -> String {
        let mut command = Command::new(PROGRAM);
        command.args(line.split_whitespace()).current_dir(self.path());
        command.env("STEADFAST_SOCKET", self.socket());
        let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
        assert!(out.status.success(), "{line}: {}", text(&out.stderr));
        text(&out.stdout)
    }

    /// What a command prints that goes well.
    pub fn good(&self, line: &str) -> String {
        let out = self.run(line);
        assert!(out.status.success(), "{line}: {}", text(&out.stderr));
        text(&out.stdout)
    }

    /// A command that is refused, for what it says; nothing is changed by it.
    pub fn bad(&self, line: &str, says: &str) {
        let before = self.good("metastat -p");
        let out = self.run(line);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{line}\n{said}");
        let command = line.split(' ').next().unwrap();
        assert!(said.starts_with(&format!("{command}: ")), "{line}\n{said}");
        assert!(said.contains(says), "{line}\n{said}");
        assert!(out.stdout.is_empty(), "{line}\n{}", text(&out.stdout));
        assert_eq!(self.good("metastat -p"), before, "{line}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A text without what differs from machine to machine: sizes, device IDs, blanks at ends of lines.
pub fn form(text: &str) -> String {
    let line = |line: &str| {
        let line = line.trim_end();
        let line = match line.split_once("Size: ") {
            Some((before, _)) => format!("{before}Size: N blocks (N MB)"),
            None => line.to_owned(),
        };
        match line.split_once("id1,") {
            Some((before, _)) => format!("{before}ID\n"),
            None => line + "\n",
        }
    };
    text.lines().map(line).collect()
}
