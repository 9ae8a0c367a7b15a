//! An image in a folder of its own, and who works on it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

/// What a command of the program ended with and said.
pub struct Said {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

/// An image file.
pub struct Image {
    folder: TempDir,
}

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(600);

fn output(command: &mut Command) -> Output {
    steadfast_suite::output(LIMIT, command).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Image {
    /// What mke2fs makes with these options, of `size` bytes.
    pub fn mke2fs(size: u64, options: &[&str]) -> Image {
        let image = Image { folder: tempfile::tempdir().unwrap() };
        File::create(image.path()).unwrap().set_len(size).unwrap();
        let mut command = Command::new("mke2fs");
        command.args(["-F", "-q", "-t", "ext4"]).args(options).arg(image.path());
        let made = output(&mut command);
        assert!(made.status.success(), "{command:?}: {}", text(&made.stderr));
        image
    }

    /// A copy, in a folder of its own.
    pub fn copy(&self) -> Image {
        let copy = Image { folder: tempfile::tempdir().unwrap() };
        std::fs::copy(self.path(), copy.path()).unwrap();
        copy
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk.img")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program in the image's folder; the words are parted by blanks.
    pub fn run(&self, line: &str) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        let out = output(command.args(line.split_whitespace()).current_dir(self.folder.path()));
        let (status, err) = (out.status.code(), text(&out.stderr));
        assert!(!err.contains("panicked"), "{line}\n{err}");
        Said { status, out: text(&out.stdout), err }
    }

    /// Runs a command that must end with this status; all that it says.
    pub fn ends(&self, line: &str, status: i32) -> String {
        let said = self.run(line);
        assert_eq!(said.status, Some(status), "{line}\n{}{}", said.out, said.err);
        said.out + &said.err
    }

    pub fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        File::open(self.path()).unwrap().read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    pub fn poke(&self, at: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(self.path()).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    /// Changes with debugfs, which keeps checksums right; what it says.
    pub fn debugfs(&self, requests: &[&str]) -> String {
        let script = self.folder.path().join("requests");
        std::fs::write(&script, requests.join("\n") + "\n").unwrap();
        let mut command = Command::new("debugfs");
        let done = output(command.args(["-w", "-f"]).arg(script).arg(self.path()));
        assert!(done.status.success(), "{requests:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// Changes features with tune2fs.
    pub fn tune2fs(&self, options: &[&str]) {
        let done = output(Command::new("tune2fs").args(options).arg(self.path()));
        assert!(done.status.success(), "{options:?}: {}", text(&done.stderr));
    }

    /// Whether e2fsck -fn has nothing to say, and what it says. It ends with status 0, too, when it
    /// has only offered to correct a counter.
    pub fn e2fsck(&self) -> (bool, String) {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "60", "e2fsck", "-fn"]).arg(self.path());
        let out = output(&mut command);
        let said = text(&out.stdout) + &text(&out.stderr);
        (out.status.success() && !said.contains("Fix? no"), said)
    }

    /// e2fsck and our check call it clean.
    pub fn assert_clean(&self) {
        let (clean, said) = self.e2fsck();
        assert!(clean, "{said}");
        self.ends("check disk.img", 0);
    }
}
