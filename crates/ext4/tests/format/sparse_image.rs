//! A sparse image file as a device, and the verdicts of e2fsprogs and the kernel on it.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request, check};
use uuid::Uuid;

/// A sparse file in a temporary folder.
pub struct Image {
    pub path: PathBuf,
    file: std::fs::File,
    info: DeviceInfo,
    _dir: tempfile::TempDir,
}

impl Image {
    pub fn new(size: u64) -> Arc<Image> {
        Image::with(size, |_| {})
    }

    /// With other promises than a plain disk's.
    pub fn with(size: u64, change: impl FnOnce(&mut DeviceInfo)) -> Arc<Image> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        let file =
            std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(size).unwrap();
        let mut info = DeviceInfo::new(path.display().to_string(), "test image", size);
        change(&mut info);
        Arc::new(Image { path, file, info, _dir: dir })
    }

    /// What mke2fs -t ext4 makes with these options.
    pub fn mke2fs(size: u64, options: &[&str]) -> Arc<Image> {
        let image = Image::new(size);
        let mut args = vec!["-q", "-F", "-t", "ext4"];
        args.extend_from_slice(options);
        args.push(image.path.to_str().unwrap());
        run_ok("mke2fs", &args);
        image
    }

    /// A copy of its own.
    pub fn copy(&self) -> Arc<Image> {
        let copy = Image::new(self.info.size);
        let (from, to) = (self.path.to_str().unwrap(), copy.path.to_str().unwrap());
        run_ok("cp", &["--sparse=always", from, to]);
        copy
    }

    pub fn device(self: &Arc<Self>) -> Arc<dyn BlockDevice> {
        Arc::clone(self) as Arc<dyn BlockDevice>
    }

    pub fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        let mut v = vec![0; len];
        self.file.read_exact_at(&mut v, at).unwrap();
        v
    }

    pub fn poke(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    /// Runs debugfs requests, writing.
    pub fn debugfs(&self, requests: &[&str]) -> String {
        let script = self.path.with_extension("debugfs");
        std::fs::write(&script, requests.join("\n") + "\n").unwrap();
        let (script, image) = (script.to_str().unwrap(), self.path.to_str().unwrap());
        run_ok("debugfs", &["-w", "-f", script, image])
    }
}

impl BlockDevice for Image {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        if let Err(e) = check(&self.info, &request) {
            return Completion::ready(Err(e));
        }
        let io = |op, offset, r: std::io::Result<()>| {
            r.map_err(|e| BlockError::Io {
                device: self.info.name.clone(),
                op,
                offset,
                reason: e.to_string(),
            })
        };
        Completion::ready(match request {
            Request::Read { offset, len } => {
                let mut v = vec![0; len as usize];
                io("read", offset, self.file.read_exact_at(&mut v, offset)).map(|()| v.into())
            }
            Request::Write { offset, data, .. } => {
                let bytes = data.into_contiguous();
                // Zeros stay holes.
                let zeros = bytes.iter().all(|b| *b == 0)
                    && self.bytes(offset, bytes.len()).iter().all(|b| *b == 0);
                let r = if zeros { Ok(()) } else { self.file.write_all_at(&bytes, offset) };
                io("write", offset, r).map(|()| Bytes::new())
            }
            Request::Flush | Request::Discard { .. } => Ok(Bytes::new()),
        })
    }
}

/// Runs a tool under a time limit.
pub fn run(tool: &str, args: &[&str]) -> Output {
    Command::new("timeout")
        .args(["-s", "KILL", "120", tool])
        .args(args)
        .env("LC_ALL", "C")
        .output()
        .unwrap()
}

/// As [`run`]; fails the test if the tool fails, and gives what it printed.
pub fn run_ok(tool: &str, args: &[&str]) -> String {
    let out = run(tool, args);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{tool} {args:?}: {}\n{text}\n{errors}", out.status);
    text
}

/// e2fsck -fn: exit status (-1 if it was killed) and what it printed.
pub fn e2fsck(image: &Path, journal: Option<&Path>) -> (i32, String) {
    let mut args = vec!["-fn".to_string()];
    if let Some(j) = journal {
        args.extend(["-j".into(), j.display().to_string()]);
    }
    args.push(image.display().to_string());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let out = run("e2fsck", &args);
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    (out.status.code().unwrap_or(-1), text)
}

/// Whether tests may mount: root with loop devices.
pub fn can_mount() -> bool {
    Path::new("/dev/loop-control").exists()
        && Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n")
}

pub fn uuid(n: u128) -> Uuid {
    let bits = n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    uuid::Builder::from_random_bytes(bits.to_le_bytes()).into_uuid()
}
