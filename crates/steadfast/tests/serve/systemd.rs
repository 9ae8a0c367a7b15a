//! The unit of systemd, and what it relies on.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Desk;

const MIRROR: &str = "[volume.d10]\ncomponents = [\"a\", \"b\"]\n";

/// systemd is notified that the host is up when its volumes are there.
#[test]
fn systemd_is_notified_when_the_volumes_are_there() {
    let mut desk = Desk::new(&["a", "b"], MIRROR);
    let socket = UnixDatagram::bind(desk.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut command = desk.command();
    command.args(["serve", "-f", "stack.toml", "--tree", "tree"]);
    command.env("NOTIFY_SOCKET", desk.path().join("notify"));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    desk.host = Some(command.spawn().unwrap());
    let notified = || {
        let mut bytes = [0; 256];
        let len = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..len]).trim().to_owned()
    };
    assert_eq!(notified(), "READY=1");
    assert!(desk.tree().join("dsk/d10").exists());
    assert!(desk.good("host status").contains("d10"));
    desk.stop();
    assert_eq!(notified(), "STOPPING=1");
}

/// systemd takes the units, with this program in its place.
#[test]
fn systemd_takes_the_units() {
    takes("steadfast.service", "steadfast.service");
    takes("steadfast@.service", "steadfast@data.service");
}

fn takes(name: &str, instance: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist").join(name);
    let unit = std::fs::read_to_string(source).unwrap();
    let installed = "/usr/local/bin/steadfast";
    assert!(unit.contains(installed));
    // The man page is installed with the program, or not.
    let unit = unit.replace(installed, env!("CARGO_BIN_EXE_steadfast"));
    let unit: String = unit
        .lines()
        .filter(|l| !l.starts_with("Documentation="))
        .fold(String::new(), |text, line| text + line + "\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(instance);
    std::fs::write(&path, unit).unwrap();
    let out = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
    let says = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success() && says.is_empty(), "{says}");
}
