//! A file system on a mirror, mounted: closed at the end, and whole again after a kill.

use std::fs;
use std::io::Write;

use rustix::process::{Signal, kill_process};

use super::bench::{Bench, lives, until};

/// With a file system on a mirror of two images.
fn mirrored() -> Option<Bench> {
    let b = Bench::with_image("1m")?;
    for leg in ["a", "b"] {
        fs::File::create(b.path(leg)).unwrap().set_len(40 << 20).unwrap();
    }
    b.good("volume create d10 a b");
    b.good("mkfs volume:a,b");
    Some(b)
}

/// Whether the last user has closed it: bit 0 of this byte of the label.
fn is_closed(b: &Bench, leg: &str) -> bool {
    fs::read(b.path(leg)).unwrap()[4096 + 142] & 1 == 1
}

#[test]
fn a_mount_holds_its_volume_and_closes_it() {
    let Some(b) = mirrored() else { return };
    b.good("mount volume:a,b m");
    fs::write(b.at().join("f"), vec![7; 300_000]).unwrap();
    // In use: by name, and each member.
    b.bad("volume offline a b --leg 1", 2);
    let status = b.good("status m");
    let a = b.path("a").canonicalize().unwrap();
    assert!(status.contains(&format!("volume:{}", a.display())), "{status}");
    assert!(!is_closed(&b, "a"));
    b.good("umount m");
    assert!(is_closed(&b, "a") && is_closed(&b, "b"));
    let status = b.good("volume status a b");
    assert!(status.contains("0 dirty"), "{status}");
    // Either leg alone has all of it.
    b.good("check volume:a,b");
    b.good("volume resync --degraded b");
    let text = b.good("ls volume:b /");
    assert!(text.contains('f'), "{text}");
    let refused = b.bad("mount a m", 2);
    assert!(refused.contains("is member 0 of the mirror 'd10'"), "{refused}");
}

/// Of a setup's mirror: a leg whose file is gone has failed, and the log says so.
#[test]
fn a_leg_that_is_cut_short_is_out_of_use() {
    let Some(b) = Bench::with_image("1m") else { return };
    let setup = "[stack]\ndisk = 'both'\n[volume.both]\nkind = 'mirror'\nmembers = ['a', 'b']\n\
                 [device.a]\npath = 'a'\n[device.b]\npath = 'b'\n";
    fs::write(b.path("s.toml"), setup).unwrap();
    for leg in ["a", "b"] {
        fs::File::create(b.path(leg)).unwrap().set_len(40 << 20).unwrap();
    }
    b.good("mount --stack s.toml m --log log");
    let text = vec![7; 3 << 20];
    let write = |name: &str| {
        fs::write(b.at().join(name), &text).unwrap();
        fs::File::open(b.at().join(name)).unwrap().sync_all().unwrap();
    };
    write("f");
    fs::File::options().write(true).open(b.path("b")).unwrap().set_len(0).unwrap();
    write("g");
    assert_eq!(fs::metadata(b.path("b")).unwrap().len(), 0, "it was made long again");
    let log = fs::read_to_string(b.path("log")).unwrap();
    let said = log.contains("volume 'both': leg 1 (") && log.contains("its file was cut short");
    assert!(said, "{log}");
    b.good("umount m");
    // The setup names it so.
    b.good("volume resync --degraded a");
    assert!(b.good("cat volume:a /f").len() == text.len());
}

#[test]
fn a_signal_closes_the_volume_of_a_mount() {
    let Some(b) = mirrored() else { return };
    b.good("mount volume:b,a m");
    fs::write(b.at().join("f"), "text").unwrap();
    let process = b.process();
    kill_process(process, Signal::TERM).unwrap();
    until("the process ends", || !lives(process));
    assert!(is_closed(&b, "a") && is_closed(&b, "b"));
    assert_eq!(b.good("cat volume:a,b /f"), "text");
}

#[test]
fn a_killed_mount_of_a_mirror_is_resynced() {
    let Some(b) = mirrored() else { return };
    b.good("mount volume:a,b m");
    let data: Vec<u8> = (0..2_000_001u32).map(|i| (i % 251) as u8).collect();
    let mut kept = fs::File::create(b.at().join("kept")).unwrap();
    kept.write_all(&data).unwrap();
    kept.sync_all().unwrap();
    // What nobody has synced is on its way.
    fs::write(b.at().join("lost"), &data).unwrap();
    let process = b.process();
    kill_process(process, Signal::KILL).unwrap();
    until("the process ends", || !lives(process));
    drop(kept);
    b.good("umount m");
    assert!(!is_closed(&b, "a"));
    b.good("mount volume:a,b m");
    assert_eq!(fs::read(b.at().join("kept")).unwrap(), data);
    b.good("umount m");
    let status = b.good("volume status --json a b");
    assert!(status.contains("\"dirty\": 0") && status.contains("\"whole\": true"), "{status}");
    let checked = b.good("check volume:a,b");
    assert!(checked.contains("clean"), "{checked}");
    for leg in ["a", "b"] {
        b.good(&format!("volume resync --degraded {leg}"));
        b.good(&format!("get volume:{leg} /kept got"));
        assert_eq!(fs::read(b.path("got")).unwrap(), data, "leg {leg} alone");
        fs::remove_file(b.path("got")).unwrap();
        if leg == "a" {
            // The other one is behind now, and is brought up.
            b.good("volume resync a b");
        }
    }
}
