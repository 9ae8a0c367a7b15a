//! A model of a device of this machine: as an ordinary user, as root, and what goes wrong.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::Desk;

const NOBODY: u32 = 65534;

/// A file of so many MiB, all of it written.
fn written(path: &Path, mib: usize) {
    fs::write(path, vec![0x5a; mib << 20]).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A loop device over a file of the desk.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn new(desk: &Desk, options: &[&str], file: &str) -> Option<LoopDevice> {
        if !is_root() {
            println!("SKIPPED: a loop device needs root");
            return None;
        }
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).args(options).arg(desk.path().join(file));
        let shown = losetup.output().unwrap();
        assert!(shown.status.success(), "{shown:?}");
        Some(LoopDevice(String::from_utf8(shown.stdout).unwrap().trim().into()))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

#[test]
fn an_ordinary_user_reads_a_file_and_writes_in_a_folder() {
    let d = Desk::new();
    fs::set_permissions(d.path(), Permissions::from_mode(0o777)).unwrap();
    written(&d.path().join("file.img"), 64);
    let user = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(d.path());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let out = steadfast_suite::output(super::LIMIT, &mut command).unwrap();
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        // A machine that tests at the same time may be too noisy, and is to say so.
        if out.status.code() == Some(1) && errors.contains("too noisy to believe") {
            return None;
        }
        assert!(out.status.success(), "{line}: {errors}");
        Some(String::from_utf8(out.stdout).unwrap())
    };
    if let Some(text) = user("lab calibrate file.img --seconds 10 -o mine.toml") {
        assert!(text.starts_with("file.img: ") && text.contains("reads only"), "{text}");
        assert!(text.contains("Demerit"), "{text}");
        let toml = fs::read_to_string(d.path().join("mine.toml")).unwrap();
        assert!(toml.contains("[device.mine]") && toml.contains("# measured: "), "{toml}");
        assert!(toml.contains("# default, not measured"), "{toml}");
        assert!(d.good("lab check mine.toml").contains("good"));
    }
    if let Some(text) = user("lab calibrate . --write --seconds 10 --json -o own.toml") {
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["format"], "steadfast-calibration");
        assert!(found["validation"][0]["demerit_ms"].is_number(), "{text}");
        assert!(d.good("lab check own.toml").contains("good"));
    }
    // Nothing of ours stays.
    let names = fs::read_dir(d.path()).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = names.map(|n| n.into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with(".toml"));
    assert_eq!(names, ["file.img"]);
}

#[test]
fn a_device_is_overwritten_only_if_that_is_said() {
    let d = Desk::new();
    d.good("mkfs disk.img --size 64m");
    written(&d.path().join("zeros"), 64);
    let image = d.path().join("disk.img");
    // Without holes.
    let mut bytes = fs::read(&image).unwrap();
    bytes.resize(64 << 20, 0);
    fs::write(&image, &bytes).unwrap();
    let Some(device) = LoopDevice::new(&d, &[], "disk.img") else { return };
    let shown = device.0.display().to_string();
    let text = d.bad(&format!("lab calibrate {shown} --write -o x.toml"), 2);
    assert!(text.contains("a file system (UUID") && text.contains("--destroy"), "{text}");
    assert!(fs::read(&image).unwrap() == bytes, "it is as it was");
    // What is in use is refused, also to be read.
    let at = d.path().join("at");
    fs::create_dir(&at).unwrap();
    let mounted = Command::new("mount").arg(&device.0).arg(&at).status().unwrap();
    assert!(mounted.success());
    for options in ["", " --write --destroy"] {
        let text = d.bad(&format!("lab calibrate {shown}{options}"), 2);
        assert!(text.contains("is in use") && text.contains("mounted"), "{text}");
    }
    assert!(Command::new("umount").arg(&at).status().unwrap().success());
    let out = d.run(&format!("lab calibrate {shown} --write --destroy --seconds 10 -o x.toml"));
    let errors = String::from_utf8_lossy(&out.stderr);
    match out.status.code() {
        Some(0) => assert!(d.good("lab check x.toml").contains("good")),
        Some(1) => assert!(errors.contains("too noisy to believe"), "{errors}"),
        status => panic!("{status:?}: {errors}"),
    }
    let text = d.bad(&format!("info {shown}"), 2);
    assert!(!text.contains("panicked"), "no half file system is left: {text}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let d = Desk::new();
    assert!(d.bad("lab calibrate nowhere", 2).contains("nowhere"));
    assert!(d.bad("lab calibrate .", 2).contains("--write"));
    assert!(d.bad("lab calibrate . --write --destroy", 2).contains("folder"));
    d.bad("lab calibrate . --destroy", 2);
    d.bad("lab calibrate . --write --seconds 1", 2);
    written(&d.path().join("small"), 8);
    assert!(d.bad("lab calibrate small -o x.toml", 2).contains("too small"));
    File::create(d.path().join("holes")).unwrap().set_len(64 << 20).unwrap();
    assert!(d.bad("lab calibrate holes -o x.toml", 2).contains("holes"));
    assert!(d.bad("lab calibrate small -o no/such/place", 2).contains("no/such/place"));
    assert!(d.bad("lab calibrate small -o ./small", 2).contains("that file is read"));
    assert!(d.bad("lab calibrate small --write -o x.toml", 2).contains("--destroy"));
    written(&d.path().join("big"), 40);
    let Some(device) = LoopDevice::new(&d, &["--read-only"], "big") else { return };
    let line = format!("lab calibrate {} --write --destroy -o x.toml", device.0.display());
    let text = d.bad(&line, 2);
    assert!(text.contains("is read-only: leave --write out"), "{text}");
    assert!(!d.path().join("x.toml").exists());
}

#[test]
fn a_device_that_disappears_leaves_what_was_there() {
    let d = Desk::new();
    let file = d.path().join("file.img");
    written(&file, 64);
    fs::write(d.path().join("mine.toml"), "older").unwrap();
    let cut = thread::spawn(move || {
        thread::sleep(Duration::from_secs(2));
        File::options().write(true).open(file).unwrap().set_len(1 << 20).unwrap();
    });
    let text = d.bad("lab calibrate file.img --seconds 60 -o mine.toml", 1);
    cut.join().unwrap();
    assert!(text.contains("it was truncated meanwhile"), "{text}");
    assert_eq!(fs::read_to_string(d.path().join("mine.toml")).unwrap(), "older");
}
