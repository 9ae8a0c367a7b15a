//! The kernel's ext4 on a block device over a volume, while a leg dies. Needs root, fio and loop
//! devices.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Desk, LIMIT};

fn run(program: &str, words: &[&str]) -> String {
    steadfast_suite::run_ok(LIMIT, Command::new(program).args(words)).unwrap()
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
    let out = steadfast_suite::output_of(LIMIT, fio).unwrap();
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

/// Whatever is said of a detach that failed, the device is the host's until it is gone.
#[test]
fn a_device_that_stays_in_use_is_known_until_it_is_detached() {
    let mut desk = Desk::new(&["a"], "[volume.d10]\ncomponents = [\"a\"]\n");
    desk.start();
    let device = desk.good("volume attach-kernel d10").trim().to_owned();
    let user = std::fs::File::open(&device).unwrap();
    desk.bad("volume detach-kernel d10", 2, "stays in use");
    assert_eq!(desk.volume("d10")["kernel"], device.as_str());
    desk.bad("volume destroy d10", 2, "of the kernel: detach-kernel it first");
    drop(user);
    desk.good("volume detach-kernel d10");
    assert!(desk.volume("d10")["kernel"].is_null());
    // Who detaches it by hand is noticed, and it can be made again.
    let device = desk.good("volume attach-kernel d10").trim().to_owned();
    desk.bad("volume attach-kernel d10", 2, "already");
    run("losetup", &["-d", &device]);
    assert!(desk.volume("d10")["kernel"].is_null());
    let device = desk.good("volume attach-kernel d10").trim().to_owned();
    run("losetup", &["-d", &device]);
    desk.good("volume detach-kernel d10");
    desk.stop();
}

/// The file under it, as the kernel reports it.
fn under(device: &str) -> Option<String> {
    let disk = Path::new("/sys/block").join(Path::new(device).file_name().unwrap());
    std::fs::read_to_string(disk.join("loop/backing_file")).ok()
}

/// What has lost its tree, also when the test fails: nothing shows whose it is.
struct Detaches(String);

impl Drop for Detaches {
    fn drop(&mut self) {
        if under(&self.0).is_some_and(|file| file.starts_with("/dsk/")) {
            let _ = steadfast_suite::run(LIMIT, Command::new("losetup").arg("-d").arg(&self.0));
        }
    }
}

/// A device of a killed host's that is somebody else's by now, of the same name: the next host
/// leaves it alone. What is under it then; `None`: another test was faster and has the device.
fn left_alone(desk: &mut Desk, image: &Path) -> Option<String> {
    let device = desk.good("volume attach-kernel d10").trim().to_owned();
    desk.kill();
    run("umount", &["-l", desk.tree().to_str().unwrap()]);
    run("losetup", &["-d", &device]);
    let mut losetup = Command::new("losetup");
    let attached = steadfast_suite::run(LIMIT, losetup.arg(&device).arg(image));
    desk.start();
    attached.unwrap().0.success().then(|| {
        let file = under(&device).unwrap_or_default();
        run("losetup", &["-d", &device]);
        file
    })
}

#[test]
fn a_device_of_a_killed_host_is_detached_also_without_its_tree() {
    let mut desk = Desk::new(&["a", "b"], "[volume.d10]\ncomponents = [\"a\"]\n");
    desk.start();
    let device = desk.good("volume attach-kernel d10").trim().to_owned();
    desk.kill();
    run("umount", &["-l", desk.tree().to_str().unwrap()]);
    let _nobodys = Detaches(device.clone());
    let file = under(&device).unwrap();
    assert!(!file.contains("tree"), "nobody finds it by its path: {file}");
    desk.start();
    // Another test may have the free device by now.
    assert_ne!(under(&device).as_deref(), Some(file.as_str()), "{}", desk.log());
    let log = desk.log();
    assert!(log.contains(&format!("d10: {device} was of a host that has ended")), "{log}");
    let image = desk.path().join("b");
    let left = (0..20).find_map(|_| left_alone(&mut desk, &image));
    assert_eq!(left.expect("a device that no other test takes").trim(), image.to_str().unwrap());
    desk.stop();
}

/// Also when the test fails.
struct Unmounts<'p>(&'p Path);

impl Drop for Unmounts<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).stderr(Stdio::null()).status();
    }
}
