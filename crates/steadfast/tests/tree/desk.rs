//! A folder to work in, with the program and the tools that make hostile images.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

/// Seconds that any command may take.
const SECONDS: &str = "60";
/// The same with its end.
const LIMIT: Duration = Duration::from_secs(90);

/// The folder.
pub struct Desk(TempDir);

/// What a command has said.
pub struct Said {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Desk {
    pub fn new() -> Self {
        Desk(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", SECONDS]).args(words).current_dir(self.0.path());
        // What hangs in the kernel, no signal ends.
        steadfast_suite::output(LIMIT, &mut command).unwrap()
    }

    /// Runs the program, which must not panic, nor hang.
    pub fn run(&self, line: &str) -> Said {
        let words: Vec<&str> =
            [env!("CARGO_BIN_EXE_steadfast")].into_iter().chain(line.split_whitespace()).collect();
        said(line, self.command(&words))
    }

    /// Runs the program as the user nobody.
    pub fn run_as_nobody(&self, line: &str) -> Said {
        let words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
        let program = self.path("steadfast");
        std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), &program).unwrap();
        let words: Vec<&str> = words
            .into_iter()
            .chain([program.to_str().unwrap()])
            .chain(line.split_whitespace())
            .collect();
        said(line, self.command(&words))
    }

    /// Runs the program, which must succeed.
    pub fn good(&self, line: &str) -> Said {
        let said = self.run(line);
        assert_eq!(said.status, Some(0), "{line}\n{}", said.err);
        said
    }

    /// Runs the program, which must find a problem.
    pub fn bad(&self, line: &str) -> Said {
        let said = self.run(line);
        assert_eq!(said.status, Some(1), "{line}\n{}{}", said.out, said.err);
        said
    }

    /// An image without checksums, which bytes can be changed in.
    pub fn plain_image(&self, image: &str) {
        let made = self.command(&[
            "mke2fs",
            "-q",
            "-F",
            "-t",
            "ext4",
            "-b",
            "1024",
            "-O",
            "^metadata_csum,^has_journal",
            image,
            "1m",
        ]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Has debugfs change an image.
    pub fn debugfs(&self, image: &str, commands: &[&str]) {
        for command in commands {
            let out = self.command(&["debugfs", "-w", "-R", command, image]);
            assert!(out.status.success(), "{command}");
        }
    }

    /// Replaces all of `old` in the image's bytes by `new`, which is as long. How often.
    pub fn patch(&self, image: &str, old: &[u8], new: &[u8]) -> usize {
        assert_eq!(old.len(), new.len());
        let mut bytes = std::fs::read(self.path(image)).unwrap();
        let places: Vec<usize> =
            (0..=bytes.len() - old.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
        for at in &places {
            bytes[*at..at + new.len()].copy_from_slice(new);
        }
        std::fs::write(self.path(image), bytes).unwrap();
        places.len()
    }

    pub fn e2fsck_is_clean(&self, image: &str) {
        let out = self.command(&["e2fsck", "-fn", image]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    }
}

fn said(line: &str, out: Output) -> Said {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = Said { status: out.status.code(), out: text(&out.stdout), err: text(&out.stderr) };
    assert!(said.status.is_some_and(|s| s < 4), "{line}: {:?}\n{}", said.status, said.err);
    assert!(!said.err.contains("panicked"), "{line}\n{}", said.err);
    said
}

/// Whether the tests that need root can run.
pub fn root(test: &str) -> bool {
    let root = Path::new("/proc/self").metadata().is_ok_and(|m| m.uid() == 0);
    if !root {
        println!("SKIPPED: {test}: needs root");
    }
    root
}
