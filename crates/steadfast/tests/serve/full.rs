//! The disk that holds the configuration and the state is full.

use std::path::PathBuf;
use std::process::Command;

use super::Desk;

/// A small file system in memory, for as long as the test runs.
struct Small(PathBuf);

impl Small {
    fn at(folder: PathBuf) -> Small {
        std::fs::create_dir(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&folder);
        assert!(mount.status().unwrap().success(), "mounting needs root");
        Small(folder)
    }

    /// Takes all room that there is.
    fn fill(&self) {
        // It ends with an error: that is what it is for.
        assert!(std::fs::write(self.0.join("filler"), vec![1; 1 << 20]).is_err());
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// What would have to be remembered is refused and changes nothing; the host goes on, and does it
/// when there is room.
#[test]
fn a_full_disk_refuses_changes_and_keeps_the_state() {
    let mut desk = Desk::new(&["a", "b", "c"], "");
    let small = Small::at(desk.path().join("conf"));
    let text = std::fs::read_to_string(desk.path().join("stack.toml")).unwrap();
    std::fs::write(
        small.0.join("stack.toml"),
        text.replace("\"a\"", "\"../a\"").replace("\"b\"", "\"../b\"").replace("\"c\"", "\"../c\""),
    )
    .unwrap();
    desk.config = "conf/stack.toml";
    desk.start();
    desk.good("volume create --host d10 a b");
    let state = small.0.join("stack.state.json");
    let before = std::fs::read(&state).unwrap();
    small.fill();
    let images = || ["a", "b", "c"].map(|name| std::fs::read(desk.path().join(name)).unwrap());
    let contents = images();
    let full = "No space left on device";
    for command in [
        "volume create --host d11 c",
        "volume add d10 --leg c",
        "volume add d10 --leg c --spare",
        "volume remove d10 --leg b",
        "volume destroy d10",
        "svm ramdiskadm -a r0 1m",
        "host remove-device c",
    ] {
        let out = desk.run(command);
        let says = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{command}: {says}");
        assert!(says.contains(full) && says.contains("nothing was changed"), "{command}: {says}");
        assert!(says.contains("stack.state.json"), "{command}: {says}");
    }
    assert!(std::fs::read(&state).unwrap() == before);
    assert!(images() == contents, "a refused command has written to a device");
    assert_eq!(desk.volume("d10")["mirror"]["legs"].as_array().unwrap().len(), 2);
    assert!(desk.volume("d11").is_null());
    small.make_room();
    desk.good("volume add d10 --leg c");
    desk.wait_until_whole("d10");
    desk.kill();
    desk.start();
    assert_eq!(desk.volume("d10")["mirror"]["legs"].as_array().unwrap().len(), 3);
    desk.stop();
}
