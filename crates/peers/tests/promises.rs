//! What a program has been promised through the host's file systems (`HostFs`) is there after a
//! power cut, whichever way it asked; what nobody asked for is not, or the test would see nothing.
//! Needs root, FUSE and loop devices, as CI has them.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{ModelParams, SsdParams};
use steadfast_devices::store::Store;
use steadfast_peers::{Build, KernelFs, Peer};
use steadfast_vfs::{FileSystem, HostFs, OpenFlags, Result};

const DISK: u64 = 64 << 20;
const OLD: [u8; 4096] = [b'o'; 4096];
const NEW: [u8; 8192] = [b'n'; 8192];

/// How it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Open(OpenFlags),
    Call(OpenFlags),
    Fsync { data_only: bool },
    Nothing,
}

const ALL: [Asked; 7] = [
    Asked::Open(OpenFlags::SYNC),
    Asked::Open(OpenFlags::DSYNC),
    Asked::Call(OpenFlags::SYNC),
    Asked::Call(OpenFlags::DSYNC),
    Asked::Fsync { data_only: false },
    Asked::Fsync { data_only: true },
    Asked::Nothing,
];

/// Every way, buffered and past the page cache, and the name of its file.
fn cases() -> impl Iterator<Item = (Asked, OpenFlags, String)> {
    let each = |(i, asked): (usize, Asked)| {
        let direct = [OpenFlags::empty(), OpenFlags::DIRECT].into_iter();
        direct.map(move |direct| (asked, direct, format!("file-{i}-{}", direct.bits())))
    };
    ALL.into_iter().enumerate().flat_map(each)
}

fn write(fs: &HostFs, asked: Asked, direct: OpenFlags, name: &str) -> Result<()> {
    let file = fs.lookup(fs.root(), name.as_bytes())?;
    let flags = OpenFlags::WRITE | direct;
    let opened = if let Asked::Open(promise) = asked { promise } else { OpenFlags::empty() };
    let fh = fs.open(file.ino, flags | opened)?;
    let data = Bytes::from_static(&NEW);
    let written = match asked {
        Asked::Call(promise) => fs.write_as(fh, 4096, data, direct | promise)?,
        _ => fs.write(fh, 4096, data)?,
    };
    assert_eq!(written, NEW.len());
    if let Asked::Fsync { data_only } = asked {
        fs.fsync(fh, data_only)?;
    }
    fs.release(fh)
}

#[test]
fn what_was_promised_through_the_host_is_there() {
    let disk: Build = Arc::new(|| {
        let ssd = SsdParams {
            sectors: DISK / 512,
            write_cache: SsdCache::Volatile,
            ..SsdParams::default()
        };
        Ok(vec![ModelParams::Ssd(ssd).build("disk")?])
    });
    // No timer makes durable what nobody has asked for.
    let peer = Peer {
        fs: KernelFs::Ext4,
        mount_options: "commit=600".into(),
        mkfs_words: Vec::new(),
        build: disk,
        lying_caches: Vec::new(),
    };
    let running = peer.start(None).unwrap();
    for (_, _, name) in cases() {
        std::fs::write(running.path().join(name), OLD).unwrap();
    }
    let bases = running.begin().unwrap();
    let fs = HostFs::open(running.path()).unwrap();
    let mut cuts = Vec::new();
    for (asked, direct, name) in cases() {
        write(&fs, asked, direct, &name).unwrap();
        cuts.push((asked, direct, name, running.log().note(0, [0; 3]).tick));
    }
    drop(fs);
    let (recording, taken_away) = running.end();
    taken_away.unwrap();

    let new = [&OLD[..], &NEW[..]].concat();
    let mut wrong = Vec::new();
    for (asked, direct, name, cut) in cuts {
        let nothing_in_doubt = |(base, device): (&Store, u32)| {
            recording.at(DeviceId(device), cut).contents(base, 0, 0, &mut Rng::new(1))
        };
        let contents = bases.iter().zip(0..).map(nothing_in_doubt).collect();
        let mut held = None;
        let mut look = |at: &Path| held = std::fs::read(at.join(&name)).ok();
        assert_eq!(peer.recover(contents, &mut look, None).unwrap().refused, None);
        if (held.as_ref() == Some(&new)) != (asked != Asked::Nothing) {
            wrong.push((asked, direct));
        }
    }
    assert!(wrong.is_empty(), "lost, or there without having been asked for: {wrong:?}");
}
