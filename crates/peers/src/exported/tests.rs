//! A process that is killed while its own threads wait for the device that it serves.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request};
use steadfast_devices::source::Ram;
use steadfast_host::Folder;

use super::LoopExport;

/// What a process that runs this test again is to do.
const ROLE: &str = "STEADFAST_IS_KILLED";

/// Memory that never answers a write.
struct Stuck(Ram);

impl BlockDevice for Stuck {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&self, request: Request) -> Completion {
        if matches!(request, Request::Write { .. }) {
            loop {
                thread::park();
            }
        }
        self.0.submit(request)
    }
}

/// Exports such a device and waits for it, in a thread that cannot be interrupted.
#[allow(clippy::print_stdout, reason = "its parent reads it")]
fn wait_for_oneself() {
    let exported = match LoopExport::new(Arc::new(Stuck(Ram::new("stuck", 1 << 20)))) {
        Ok(exported) => exported,
        Err(e) => return println!("\ncannot {e}"),
    };
    println!("\nmade {}", exported.path().display());
    let mut device = File::options().write(true).open(exported.path()).unwrap();
    device.write_all(&[1; 4096]).unwrap();
    device.sync_all().unwrap();
}

fn again(role: &str) -> Child {
    let name = "exported::tests::a_process_that_waits_for_its_own_device_can_be_killed";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env(ROLE, role).stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn stat(process: &Path) -> Option<Vec<String>> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let words = stat.rsplit_once(')')?.1.split_whitespace();
    Some(words.map(str::to_owned).collect())
}

/// Whether one of its threads is in uninterruptible sleep.
fn waits(process: &Child) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).unwrap().flatten();
    threads.filter_map(|thread| stat(&thread.path())).any(|words| words[0] == "D")
}

/// The process that guards its mount.
fn guard_of(process: &Child) -> Option<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let parent = process.id().to_string();
    let child = all.map(|e| e.path()).find(|at| stat(at).is_some_and(|words| words[1] == parent));
    child?.file_name()?.to_str()?.parse().ok()
}

fn within(seconds: u64, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > Duration::from_secs(seconds) {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Its folder and its device, once it waits; or why it cannot.
fn start() -> Result<(Child, PathBuf, PathBuf), String> {
    let mut child = again("wait");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said = lines.filter(|line| line.starts_with("made ") || line.starts_with("cannot "));
    let said = said.next().expect("it says what it has made");
    let Some(device) = said.strip_prefix("made ") else {
        child.wait().unwrap();
        return Err(said);
    };
    let device = PathBuf::from(device);
    let sys = Path::new("/sys/block").join(device.file_name().unwrap());
    let backing = fs::read_to_string(sys.join("loop/backing_file")).unwrap();
    let folder = Path::new(&backing).parent().unwrap().to_owned();
    assert!(within(30, || waits(&child)), "no thread waits for {}", device.display());
    Ok((child, folder, sys.join("loop")))
}

#[test]
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn a_process_that_waits_for_its_own_device_can_be_killed() {
    match std::env::var(ROLE).as_deref() {
        Ok("wait") => return wait_for_oneself(),
        // What others have left is cleared first.
        Ok(_) => return drop(Folder::new("steadfast-test-").unwrap()),
        Err(_) => {}
    }
    // Without its guard it stays, unless another program of this machine begins in that moment and
    // clears it: then once more.
    let mut left = (0..11).map(|number| number == 0);
    while let Some(guarded) = left.next() {
        let (mut child, folder, device) = match start() {
            Ok(started) => started,
            Err(why) => return println!("SKIPPED: {why}"),
        };
        let guard = guard_of(&child);
        if let Some(guard) = guard.filter(|_| !guarded) {
            let guard = rustix::process::Pid::from_raw(guard).unwrap();
            rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
        }
        child.kill().unwrap();
        let mut has_ended = || child.try_wait().unwrap().is_some();
        let ended = within(if guarded { 30 } else { 2 }, &mut has_ended);
        let other = (!guarded).then(|| again("clear").wait().unwrap());
        let cleared = within(30, || has_ended() && !device.exists() && !folder.exists());
        if !cleared {
            let how = ["--force", "--lazy", "--no-canonicalize"];
            let _ = Command::new("umount").args(how).arg(&folder).status();
        }
        assert!(guard.is_some(), "nobody guards {}", folder.display());
        let is_last = left.len() == 0;
        assert!(ended == guarded || !guarded && !is_last, "whether it ends by itself: {ended}");
        assert!(
            cleared && other.is_none_or(|other| other.success()),
            "{} {}",
            folder.display(),
            device.display()
        );
        if !guarded && !ended {
            return;
        }
    }
}
