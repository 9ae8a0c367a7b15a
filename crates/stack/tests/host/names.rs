//! One name is one thing: an alias is in nobody's way.

use std::time::Duration;

use steadfast_stack::protocol::{NewName, RefusalKind, Request};

use super::{Desk, Nowhere, create, image_at, occupant, start};

fn alias(name: &str, target: &str) -> Request {
    Request::AddAlias(NewName { name: name.into(), target: target.into(), volatile: false })
}

#[test]
fn a_name_that_is_taken_is_refused_by_what_has_it() {
    let desk = Desk::new(&["a"], "");
    desk.good(alias("b", "a"));
    let path = desk.image("b");
    image_at(&path, 1 << 20);
    let target = path.display().to_string();
    let refused = desk
        .ask(Request::AddDevice(NewName { name: "b".into(), target, volatile: false }))
        .unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Busy);
    assert_eq!(refused.error, "b: is the name of an alias of 'a' already: choose another one");
    let refused = desk.ask(Request::Create(create("b", &["a"]))).unwrap_err();
    assert!(refused.error.contains("an alias of 'a'"), "{refused}");
    let refused = desk.ask(alias("a", "b")).unwrap_err();
    assert!(refused.error.contains("a device already"), "{refused}");
}

/// A configuration that has got a section since: whoever names it would get the other one.
#[test]
fn a_configuration_with_a_name_that_is_taken_is_refused() {
    let config = "[device.a]\npath = \"a\"\n[ramdisk.r]\nsize = \"1m\"\n";
    let folder = tempfile::tempdir().unwrap();
    for image in ["a", "b"] {
        image_at(&folder.path().join(image), 16 << 20);
    }
    // A thread of the one before may have its lock for a moment.
    let begin = |more: &str| loop {
        let text = format!("{config}{more}");
        match start(folder.path(), &text, occupant, Box::new(Nowhere)) {
            Err(e) if e.kind == RefusalKind::Busy => std::thread::sleep(Duration::from_millis(10)),
            started => break started,
        }
    };
    let host = begin("").unwrap();
    host.answer(alias("b", "a")).unwrap();
    host.answer(alias("c", "a")).unwrap();
    host.close().unwrap();
    drop(host);
    let new = "[device.b]\npath = \"b\"\n[volume.c]\ncomponents = [\"b\"]\n";
    let refused = begin(new).map(drop).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Refused);
    for part in [
        "stack.toml: [device.b]: 'b' is an alias of 'a' already",
        "[volume.c]: 'c' is an alias of 'a' already",
        "rm dsk/b rdsk/b in its tree",
    ] {
        assert!(refused.error.contains(part), "{refused}");
    }
    assert!(std::fs::read(folder.path().join("b")).unwrap().iter().all(|byte| *byte == 0));
    // The alias goes, and the section counts.
    let host = begin("").unwrap();
    for name in ["b", "c"] {
        let named = steadfast_stack::protocol::NameRequest { name: name.into() };
        host.answer(Request::RemoveAlias(named)).unwrap();
    }
    host.close().unwrap();
    drop(host);
    let host = begin(new).unwrap();
    let status = host.status();
    assert_eq!(status.volumes[0].components, ["b"]);
    host.close().unwrap();
    drop(host);
    // The same for other kinds: memory would stand for the file, and nobody would see it.
    let refused = begin("[ramdisk.b]\nsize = \"1m\"\n").map(drop).unwrap_err();
    assert!(refused.error.contains("[ramdisk.b]: 'b' is a device already"), "{refused}");
}
