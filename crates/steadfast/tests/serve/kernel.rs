//! The kernel's ext4 on a block device over a volume, while a leg dies. Needs root, fio and loop
//! devices.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Desk;

fn run(program: &str, words: &[&str]) -> String {
    let out = Command::new(program).args(words).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program} {words:?}: {text}");
    text.into_owned()
}

/// A leg that is a file of another host, which is killed under `fio --verify`: every request to it
/// fails from then on.
#[test]
fn a_leg_dies_under_the_kernels_ext4_and_is_replaced() {
    let (mut far, mut desk) = Desk::with_a_leg_of_another(&["a", "c"]);
    let device = desk.good("volume attach-kernel d10").trim().to_owned();
    desk.bad("volume destroy --host d10", 2, "of the kernel: detach-kernel it first");
    run("mkfs.ext4", &["-q", &device]);
    let folder = desk.path().join("mnt");
    std::fs::create_dir(&folder).unwrap();
    let at = folder.to_str().unwrap();
    run("mount", &[&device, at]);
    let mounted = Unmounts(&folder);
    desk.bad("volume detach-kernel d10", 2, "unmount it first");
    let written = || desk.volume("d10")["mirror"]["legs"][0]["writes"].as_u64().unwrap_or(0);
    let before = written();
    let fio = Command::new("fio")
        .args(["--name=x", "--rw=randwrite", "--bs=4k", "--size=4m", "--io_size=8m"])
        .args(["--direct=1", "--verify=crc32c", "--do_verify=1", "--fsync=16"])
        .arg(format!("--directory={at}"))
        // It leaves a file there.
        .current_dir(at)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while written() < before + 50 && Instant::now() < until {}
    far.kill();
    let out = fio.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    let log = desk.log();
    assert!(log.contains("d10: leg 1 (b) failed"), "{log}");
    desk.good("volume replace d10 --leg b --with c");
    run("umount", &[at]);
    drop(mounted);
    run("e2fsck", &["-fn", &device]);
    desk.good("volume detach-kernel d10");
    // The new leg alone.
    desk.good("volume offline d10 --leg a");
    run("e2fsck", &["-fn", desk.tree().join("dsk/d10").to_str().unwrap()]);
    desk.stop();
}

/// Also when the test fails.
struct Unmounts<'p>(&'p Path);

impl Drop for Unmounts<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).stderr(Stdio::null()).status();
    }
}
