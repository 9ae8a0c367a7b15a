//! What is refused has changed no byte of any device, also where force would overwrite it.

use std::os::unix::fs::FileExt;

use steadfast_stack::protocol::{Create, Destroy, Leg, NewName, Replace, Request};
use steadfast_vfs::{FileSystem, OpenFlags};
use steadfast_volume::ondisk::label::LayoutKind;

use super::{Desk, HELD, IMAGE, Nowhere, component, create, image_at, start};

/// A mirror `d10` of two concats, each of one device; `small` and `last` hold something else.
fn desk() -> Desk {
    let desk = Desk::new(&["a", "b", "last"], "");
    for (name, under) in [("d11", "a"), ("d12", "b")] {
        let concat = Create { kind: LayoutKind::Concat, ..create(name, &[under]) };
        desk.good(Request::Create(concat));
    }
    desk.good(Request::Create(create("d10", &["d11", "d12"])));
    image_at(&desk.image("small"), 1 << 20);
    let small = NewName {
        name: "small".into(),
        target: desk.image("small").display().to_string(),
        volatile: false,
    };
    desk.good(Request::AddDevice(small));
    for name in ["small", "last"] {
        let file = std::fs::File::options().write(true).open(desk.image(name)).unwrap();
        file.write_all_at(HELD, 0).unwrap();
        file.write_all_at(b"and a label's place", 4096).unwrap();
    }
    desk
}

fn refused(desk: &Desk, request: Request, says: &str) {
    let all = ["a", "b", "small", "last"];
    let before = all.map(|name| desk.bytes(name));
    let error = desk.ask(request.clone()).expect_err(says).error;
    assert!(error.contains(says), "{request:?}: {error}");
    for (name, before) in all.into_iter().zip(before) {
        assert!(desk.bytes(name) == before, "{request:?} has changed {name}");
    }
}

fn replace(leg: &str, with: &str) -> Request {
    let (name, leg, with) = ("d10".to_owned(), leg.to_owned(), Some(with.to_owned()));
    Request::Replace(Replace { name, leg, with, force: true, ..Replace::default() })
}

#[test]
fn a_device_under_a_concat() {
    let desk = desk();
    refused(&desk, replace("a", "small"), "is too small: the volume has");
    // The only leg that is left.
    let leg = Leg { name: "d10".into(), leg: "d12".into(), lose_data: false };
    desk.good(Request::Offline(leg));
    refused(&desk, replace("a", "last"), "last good durable copy");
}

/// The innermost is open: the outer one stays, too.
#[test]
fn all_volumes_under_a_mirror() {
    let desk = desk();
    let fh = desk.open("d12", OpenFlags::READ).unwrap();
    let destroy = Destroy { name: "d10".into(), recursive: true, ..Destroy::default() };
    refused(&desk, Request::Destroy(destroy.clone()), "d12: its file is open");
    assert_eq!(desk.host.status().volumes.len(), 3);
    desk.tree.release(fh).unwrap();
    desk.good(Request::Destroy(destroy));
    assert!(desk.host.status().volumes.is_empty());
}

#[test]
fn a_leg_a_spare_and_a_volume() {
    let desk = desk();
    refused(&desk, replace("d11", "small"), "is too small: the volume has");
    for spare in [false, true] {
        let mut new = component("d10", "small");
        (new.force, new.spare) = (true, spare);
        refused(&desk, Request::Add(new), "is too small: the volume has");
    }
    let forced = |new: Create| Request::Create(Create { force: true, ..new });
    let large = Create { size: Some(1 << 30), ..create("d20", &["small", "last"]) };
    refused(&desk, forced(large.clone()), "is too small");
    refused(&desk, Request::Create(Create { force: true, dry_run: true, ..large }), "is too small");
    let stripe = Create {
        kind: LayoutKind::Stripe,
        interlace: Some(4097),
        ..create("d20", &["small", "last"])
    };
    refused(&desk, forced(stripe), "an interlace of 4097 bytes");
    // It goes on as before.
    desk.good(replace("a", "last"));
}

#[test]
fn a_configuration_overwrites_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    ["a", "b"].iter().for_each(|image| image_at(&at(image), IMAGE));
    // In the middle, and of no known kind.
    let mut before = std::fs::read(at("a")).unwrap();
    before[(IMAGE / 2) as usize] = 7;
    std::fs::write(at("a"), &before).unwrap();
    let config = "device.a.path = 'a'\ndevice.b.path = 'b'\nvolume.d10.components = ['a', 'b']\n";
    let host = start(folder.path(), config, |_| None, Box::new(Nowhere)).unwrap();
    assert!(std::fs::read(at("a")).unwrap() == before, "it was overwritten");
    // Whoever says so by a command means it.
    host.answer(Request::Create(create("d10", &["a", "b"]))).unwrap();
    host.close().unwrap();
}
