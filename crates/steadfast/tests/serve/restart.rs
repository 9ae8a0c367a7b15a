//! Killed and started again: everything is as before.

use std::os::unix::fs::FileExt;

use super::{Desk, pattern};

const MIRROR: &str = "\
[ramdisk.r0]
size = \"16m\"
[volume.d10]
components = [\"a\", \"b\", \"r0\"]
read_policy = \"preferred:2\"
";

#[test]
fn a_host_that_is_killed_has_everything_again_and_refills_memory() {
    let mut desk = Desk::new(&["a", "b"], MIRROR);
    desk.start();
    let data = pattern(1, 3 << 20);
    let file = desk.file("dsk/d10");
    file.write_all_at(&data, 12345).unwrap();
    file.sync_all().unwrap();
    assert!(desk.read("rdsk/d10", 12345, data.len()) == data);
    desk.kill();
    drop(file);
    desk.start();
    assert!(desk.read("dsk/d10", 12345, data.len()) == data, "{}", desk.log());
    desk.wait_until_whole("d10");
    let log = desk.log();
    assert!(log.contains("d10: r0 is a leg again, blank"), "{log}");
    assert!(log.contains("d10: resync:"), "{log}");
    // Memory alone answers now.
    desk.good("volume offline --host d10 --leg b");
    assert!(desk.read("dsk/d10", 12345, data.len()) == data);
    desk.stop();
    assert!(!desk.tree().join("dsk").exists(), "the tree is gone");
    desk.start();
    assert!(desk.read("dsk/d10", 12345, data.len()) == data);
    let legs = desk.volume("d10")["mirror"]["legs"].clone();
    assert_eq!(legs[1]["state"], "Offline", "{legs:#}");
}

/// Without its state a host says which devices are members of what it does not know.
#[test]
fn a_lost_state_is_reported_and_the_configuration_takes_the_volume_up() {
    let mut desk = Desk::new(&["a", "b"], "");
    desk.start();
    desk.good("volume create --host d10 a b");
    let data = pattern(2, 1 << 20);
    let file = desk.file("dsk/d10");
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    desk.stop();
    std::fs::remove_file(desk.path().join("stack.state.json")).unwrap();
    desk.start();
    let log = desk.log();
    assert!(log.contains("b: is member 1 of 'd10', which this host does not know"), "{log}");
    desk.stop();
    let config = desk.path().join("stack.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + "[volume.d10]\ncomponents = [\"a\", \"b\"]\n").unwrap();
    desk.start();
    assert!(desk.read("dsk/d10", 0, data.len()) == data, "{}", desk.log());
}

#[test]
fn one_host_has_a_configuration() {
    let mut desk = Desk::new(&["a"], "");
    desk.start();
    desk.bad(
        "serve -f stack.toml --tree other --socket s",
        2,
        "another host has this configuration: process ",
    );
    std::fs::write(desk.path().join("two.toml"), "").unwrap();
    desk.bad("serve -f two.toml --tree other", 2, "another host answers there");
}

#[test]
fn in_the_background_it_answers_when_the_command_returns() {
    let desk = Desk::new(&["a"], "[volume.d10]\ncomponents = [\"a\"]\n");
    desk.good("serve stack.toml --tree tree");
    assert_eq!(desk.volume("d10")["mirror"]["whole"], true);
    desk.good("host stop");
    desk.bad("host status", 2, "no host answers");
}
