//! Whoever becomes a member, or ceases to be one, is opened by nobody for writing meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use steadfast_stack::Tree;
use steadfast_stack::protocol::{Create, Destroy, Replace, Request};
use steadfast_vfs::{FileSystem, FsError, OpenFlags};
use steadfast_volume::ondisk::label::LayoutKind;

use super::{Asked, Desk, Device, Nowhere, component, create, open};

/// Asked whenever the host looks whether a device can become a member.
static LOOKED_AT: Asked = Mutex::new(None);

fn looking(device: &Device) -> Option<String> {
    let mut asked = LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(asked) = &mut *asked {
        asked(&device.info().name);
    }
    None
}

/// For each way to become a member: in the very moment in which the device was found to be free,
/// somebody opens its file.
#[test]
fn who_becomes_a_member_is_not_opened_for_writing() {
    let desk = Desk::with(&["a", "b", "c", "d", "e", "f"], "", looking, Box::new(Nowhere));
    let tree = Arc::new(Tree::new(Arc::clone(&desk.host)));
    let tried = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tried);
    *LOOKED_AT.lock().unwrap() = Some(Box::new(move |name| {
        match open(&tree, name, OpenFlags::READ | OpenFlags::WRITE) {
            Err(FsError::Busy { what }) => assert!(what.contains("component"), "{what}"),
            opened => panic!("{name}: {opened:?}"),
        }
        // Who only reads does no harm.
        let fh = open(&tree, name, OpenFlags::READ).unwrap();
        tree.release(fh).unwrap();
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    let concat = |name, component| {
        let kind = LayoutKind::Concat;
        Request::Create(Create { kind, ..create(name, &[component]) })
    };
    let replace = |leg: &str, with: &str| {
        let (name, leg, with) = ("d10".to_owned(), leg.to_owned(), Some(with.to_owned()));
        Request::Replace(Replace { name, leg, with, ..Replace::default() })
    };
    let mut spare = component("d10", "e");
    spare.spare = true;
    let ways = [
        ("a mirror", Request::Create(Create { size: Some(8 << 20), ..create("d10", &["a"]) })),
        ("a concat", concat("d11", "b")),
        ("a leg", Request::Add(component("d10", "d11"))),
        ("under a concat", replace("b", "c")),
        ("in a leg's place", replace("d11", "d")),
        ("a spare", Request::Add(spare)),
    ];
    for (way, request) in ways {
        let before = tried.load(Ordering::Relaxed);
        desk.good(request);
        assert!(tried.load(Ordering::Relaxed) > before, "{way}: nothing was looked at");
    }
    *LOOKED_AT.lock().unwrap() = None;
    // What is refused leaves nobody out.
    let mut too_large = create("d12", &["f"]);
    too_large.size = Some(1 << 40);
    desk.ask(Request::Create(too_large)).unwrap_err();
    let fh = desk.open("f", OpenFlags::WRITE).unwrap();
    desk.ask(Request::Add(component("d10", "f"))).unwrap_err();
    desk.tree.release(fh).unwrap();
    desk.good(Request::Destroy(Destroy { name: "d11".into(), ..Destroy::default() }));
    let fh = desk.open("b", OpenFlags::WRITE).unwrap();
    desk.tree.release(fh).unwrap();
}

/// As long as somebody has a device's file open for writing nobody else writes to it: volumes come
/// and go beside, in all their ways.
#[test]
fn who_writes_through_the_file_writes_alone() {
    let desk = Desk::new(&["a", "b"], "");
    let done = AtomicBool::new(false);
    let opened = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // Where labels are.
            let (place, data) = (4096, vec![0x5a_u8; 4096]);
            while !done.load(Ordering::Relaxed) {
                let Ok(fh) = desk.open("a", OpenFlags::READ | OpenFlags::WRITE) else { continue };
                desk.tree.write(fh, place, data.clone().into()).unwrap();
                std::thread::sleep(Duration::from_millis(2));
                let read = desk.tree.read(fh, place, data.len()).unwrap();
                let alone = read[..] == data[..];
                desk.tree.write(fh, place, vec![0; data.len()].into()).unwrap();
                desk.tree.release(fh).unwrap();
                assert!(alone, "somebody else has written to it");
                opened.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let volumes = scope.spawn(|| {
            // Until both have had their turns, however busy the machine is.
            let begun = Instant::now();
            let (least, most) = (Duration::from_secs(4), Duration::from_secs(120));
            let mut made = 0;
            while begun.elapsed() < least
                || (begun.elapsed() < most && (made <= 5 || opened.load(Ordering::Relaxed) <= 5))
            {
                let mirror = desk.ask(Request::Create(create("d10", &["a", "b"])));
                // A retired one is taken up again.
                let keep_data = made % 2 == 0;
                if mirror.is_ok() {
                    made += 1;
                    let destroy = Destroy { name: "d10".into(), keep_data, ..Destroy::default() };
                    desk.good(Request::Destroy(destroy));
                }
            }
            made
        });
        // Also if they failed: the scope waits for who writes.
        let made = volumes.join();
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        let made = made.unwrap();
        assert!(made > 5 && opened.load(Ordering::Relaxed) > 5, "{made} {opened:?}");
    });
}
