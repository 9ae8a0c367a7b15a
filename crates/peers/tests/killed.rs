//! What a process leaves that is killed while a file system of the kernel's is mounted by it.

// What it has made its parent reads; what is skipped is said aloud.
#![allow(clippy::print_stdout)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use steadfast_devices::model::{ModelParams, SsdParams};
use steadfast_peers::{KernelFs, PathMount, Peer, clear_leftovers};

/// What a process that runs this test again is to do, and on which file.
const ROLE: &str = "STEADFAST_PEERS_ROLE";
const IMAGE: &str = "STEADFAST_PEERS_IMAGE";

fn again(role: &str, image: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["what_a_killed_process_has_mounted_goes", "--exact", "--nocapture"]);
    command.env(ROLE, role).env(IMAGE, image).stdout(Stdio::piped()).process_group(0);
    command.spawn().unwrap()
}

/// Mounts, says where, and waits to be killed.
fn mount(role: &str) {
    let wait = |at: &Path| {
        println!("\nmade {}", at.display());
        thread::sleep(Duration::from_secs(60));
    };
    if role == "path" {
        let image = PathBuf::from(std::env::var_os(IMAGE).unwrap());
        return wait(PathMount::new(KernelFs::Ext4, ("", ""), &[&image]).unwrap().path());
    }
    let params = ModelParams::Ssd(SsdParams { sectors: 64 << 11, ..SsdParams::default() });
    let (mount_options, mkfs_words) = Default::default();
    let build = Arc::new(move || Ok(vec![params.build("disk")?]));
    let lying_caches = Vec::new();
    let peer = Peer { fs: KernelFs::Ext4, mount_options, mkfs_words, build, lying_caches };
    wait(peer.start(None).unwrap().path());
}

/// The processes that it has started, which guard its mounts.
fn guards(of: &Child) -> Vec<Pid> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().into_string().ok());
    let is_child = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        parent == Some(&*of.id().to_string())
    };
    pids.filter(is_child).filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn lines_with(file: &str, word: &Path) -> bool {
    fs::read_to_string(file).unwrap().contains(word.to_str().unwrap())
}

/// Whether a loop device is over the file.
fn is_attached(image: &Path) -> bool {
    let files = fs::read_dir("/sys/block").unwrap().flatten();
    let mut files = files.map(|disk| disk.path().join("loop/backing_file"));
    files.any(|file| fs::read_to_string(file).is_ok_and(|f| Path::new(f.trim_end()) == image))
}

fn gone(mounted: &Path, image: &Path) -> bool {
    let begun = Instant::now();
    while lines_with("/proc/self/mountinfo", mounted) || mounted.exists() || is_attached(image) {
        if begun.elapsed() > Duration::from_secs(20) {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn what_a_killed_process_has_mounted_goes() {
    match std::env::var(ROLE).as_deref() {
        Ok("clear") => return clear_leftovers(),
        Ok(role) => return mount(role),
        Err(_) => {}
    }
    if let Err(why) = KernelFs::Ext4.available() {
        return println!("SKIPPED: {why}");
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().canonicalize().unwrap().join("disk.img");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    for role in ["path", "model"] {
        for how in ["alone", "with its group", "with its guards"] {
            let mut child = again(role, &image);
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut lines = lines.map_while(Result::ok);
            let made = lines.find_map(|l| l.strip_prefix("made ").map(PathBuf::from)).unwrap();
            let pid = Pid::from_child(&child);
            let guards = guards(&child);
            match how {
                "with its group" => kill_process_group(pid, Signal::KILL).unwrap(),
                "with its guards" => guards
                    .iter()
                    .chain([&pid])
                    .for_each(|pid| kill_process(*pid, Signal::KILL).unwrap()),
                _ => child.kill().unwrap(),
            }
            if how == "with its guards" {
                assert!(lines_with("/proc/self/mountinfo", &made), "{role}");
                assert!(again("clear", &image).wait().unwrap().success());
            }
            let gone = gone(&made, &image);
            if !gone {
                let _ = Command::new("umount").args(["--lazy", "--"]).arg(&made).status();
            }
            child.wait().unwrap();
            assert!(gone && !guards.is_empty(), "{role}, {how}: {}", made.display());
        }
    }
}
