//! Spares of a mirror that is in use.

use std::os::unix::fs::FileExt;

use super::{Desk, pattern};

fn spares(desk: &Desk) -> Vec<String> {
    let spares = desk.volume("d10")["mirror"]["spares"].clone();
    let name = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_owned();
    spares.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn a_spare_is_removed_and_another_stands_in_for_a_dead_leg() {
    let (mut far, mut desk) = Desk::with_a_leg_of_another(&["a", "c", "d"]);
    desk.good("volume add d10 --leg c --spare");
    desk.good("volume add d10 --leg d --spare");
    assert_eq!(spares(&desk), ["c", "d"]);
    desk.bad("host remove-device c", 2, "c: is a component of 'd10'");
    desk.good("volume remove d10 --leg c");
    assert_eq!(spares(&desk), ["d"]);
    desk.bad("volume remove d10 --leg c", 2, "is no leg of 'd10'");
    desk.good("host remove-device c");
    // The host remembers it.
    desk.kill();
    desk.start();
    assert_eq!(spares(&desk), ["d"]);
    let data = pattern(5, 1 << 20);
    let file = desk.file("dsk/d10");
    far.kill();
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    desk.wait_until_whole("d10");
    assert!(spares(&desk).is_empty());
    assert!(desk.log().contains("spare d is leg 1 now"), "{}", desk.log());
    desk.good("volume offline d10 --leg a");
    assert!(desk.read("dsk/d10", 0, data.len()) == data);
    desk.stop();
}
