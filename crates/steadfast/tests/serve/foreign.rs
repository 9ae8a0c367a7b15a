//! Devices that others have made something on, and names that stand for another disk than before.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use super::retired::mirror_of_concats;
use super::{Desk, pattern};

/// Puts the signature of an XFS file system, and something behind it, on an image.
fn xfs(desk: &Desk, image: &str) -> Vec<u8> {
    let mut bytes = vec![0; 16 << 20];
    bytes[..4].copy_from_slice(b"XFSB");
    bytes[1 << 20..3 << 20].copy_from_slice(&pattern(7, 2 << 20));
    std::fs::write(desk.path().join(image), &bytes).unwrap();
    bytes
}

fn contents(desk: &Desk, image: &str) -> Vec<u8> {
    std::fs::read(desk.path().join(image)).unwrap()
}

#[test]
fn what_others_have_made_is_taken_by_force_only() {
    let config = "[volume.d30]\ncomponents = [\"c\"]\n";
    let mut desk = Desk::new(&["a", "b", "c", "x"], config);
    let of_c = xfs(&desk, "c");
    let of_x = xfs(&desk, "x");
    desk.start();
    assert!(desk.log().contains("holds an XFS file system"), "{}", desk.log());
    assert!(contents(&desk, "c") == of_c);
    desk.good("volume create --host d10 a b");
    desk.bad("volume create --host d11 x", 2, "holds an XFS file system");
    desk.bad("volume add --host d10 --leg x", 2, "holds an XFS file system");
    desk.bad("volume replace --host d10 --leg b --with x", 2, "holds an XFS file system");
    assert!(contents(&desk, "x") == of_x);
    desk.good("volume add --host d10 --leg x --force");
    desk.wait_until_whole("d10");
    assert_ne!(contents(&desk, "x")[..4], *b"XFSB");
    desk.stop();
}

#[test]
fn a_disk_under_the_name_of_memory_is_not_overwritten() {
    let config = "[volume.d10]\ncomponents = [\"a\", \"v\"]\nvolatile = [\"v\"]\n";
    let mut desk = Desk::new(&["a", "v"], config);
    desk.start();
    let data = pattern(3, 1 << 20);
    let file = desk.file("dsk/d10");
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    desk.wait_until_whole("d10");
    desk.stop();
    let disk = xfs(&desk, "v");
    desk.start();
    assert!(desk.read("dsk/d10", 0, data.len()) == data);
    let log = desk.log();
    assert!(log.contains("v is not taken as a leg again"), "{log}");
    desk.stop();
    assert!(contents(&desk, "v") == disk);
    // Without a signature, but not blank.
    let mut disk = disk;
    disk[..4].fill(0);
    disk[100] = 1;
    std::fs::write(desk.path().join("v"), &disk).unwrap();
    desk.start();
    desk.stop();
    assert!(contents(&desk, "v") == disk);
    // As memory is after a start.
    OpenOptions::new().write(true).truncate(true).open(desk.path().join("v")).unwrap();
    let file = OpenOptions::new().write(true).open(desk.path().join("v")).unwrap();
    file.set_len(16 << 20).unwrap();
    desk.start();
    desk.wait_until_whole("d10");
    desk.stop();
}

/// A mirror that was taken up without a leg that is gone is not assembled without others of its
/// own accord.
#[test]
fn what_was_given_up_once_is_not_given_up_again() {
    let (mut desk, data) = mirror_of_concats();
    desk.done(json!({"do": "destroy", "name": "d10", "keep_data": true}));
    desk.done(json!({"do": "destroy", "name": "d13"}));
    desk.done(json!({"do": "create", "name": "d10", "components": ["d11"]}));
    desk.done(json!({"do": "add", "name": "d10", "component": "d12"}));
    let is_whole = |leg: &Value| leg["component"] == "d13" || leg["state"] == "Okay";
    while !desk.volume("d10")["mirror"]["legs"].as_array().unwrap().iter().all(is_whole) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    desk.stop();
    // All legs are there: nothing needs to be said.
    desk.start();
    assert!(desk.read("dsk/d10", 0, data.len()) == data, "{}", desk.log());
    desk.stop();
    std::fs::rename(desk.path().join("b"), desk.path().join("away")).unwrap();
    desk.start();
    assert!(!desk.tree().join("dsk/d10").exists(), "{:#}\n{}", desk.volume("d10"), desk.log());
    desk.stop();
    std::fs::rename(desk.path().join("away"), desk.path().join("b")).unwrap();
    desk.start();
    assert!(desk.read("dsk/d10", 0, data.len()) == data, "{}", desk.log());
    desk.stop();
}
