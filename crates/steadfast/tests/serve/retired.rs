//! Mirrors that are taken apart and made again: their data stays.

use std::os::unix::fs::FileExt;

use serde_json::json;

use super::{Desk, pattern};

/// A mirror d10 of concats of one component each, the third of memory, and what it holds.
pub(super) fn mirror_of_concats() -> (Desk, Vec<u8>) {
    let mut desk = Desk::new(&["a", "b"], "[ramdisk.r0]\nsize = \"16m\"\n");
    desk.start();
    for (name, component) in [("d11", "a"), ("d12", "b"), ("d13", "r0")] {
        let components = json!([component]);
        desk.done(
            json!({"do": "create", "name": name, "kind": "concat", "components": components}),
        );
    }
    desk.done(json!({"do": "create", "name": "d10", "components": ["d11"]}));
    for leg in ["d12", "d13"] {
        desk.done(json!({"do": "add", "name": "d10", "component": leg}));
    }
    let data = pattern(4, 1 << 20);
    desk.file("dsk/d10").write_all_at(&data, 0).unwrap();
    desk.wait_until_whole("d10");
    (desk, data)
}

/// Concats of one component as legs; memory is named first when the mirror is made again.
#[test]
fn memory_first_takes_the_data_up_and_is_never_its_only_holder() {
    let (mut desk, data) = mirror_of_concats();
    desk.done(json!({"do": "destroy", "name": "d10", "keep_data": true}));
    let refused = desk.ask(json!({"do": "create", "name": "d20", "components": ["d11", "a"]}));
    assert_eq!(refused["ok"], false, "{refused}");
    let first = json!({"do": "create", "name": "d10", "components": ["d13"], "read": "first"});
    desk.done(first);
    assert!(desk.read("dsk/d10", 0, data.len()) == data);
    let legs = desk.volume("d10")["mirror"]["legs"].clone();
    assert_eq!(legs[0]["component"], "d13");
    assert_eq!((&legs[1]["attached"], &legs[2]["attached"]), (&json!(false), &json!(false)));
    // Killed now, with memory named alone.
    desk.kill();
    desk.start();
    assert!(desk.read("dsk/d10", 0, data.len()) == data, "{}", desk.log());
    for leg in ["d12", "d11"] {
        desk.done(json!({"do": "add", "name": "d10", "component": leg}));
    }
    desk.wait_until_whole("d10");
    let volume = desk.volume("d10");
    assert_eq!(volume["components"], json!(["d13", "d12", "d11"]));
    assert_eq!(volume["mirror"]["read"], "first");
    assert!(desk.read("dsk/d10", 0, data.len()) == data);
}
