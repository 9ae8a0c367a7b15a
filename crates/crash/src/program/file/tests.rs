use std::sync::Arc;

use proptest::prelude::*;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::record::{DeviceId, Record, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;

use super::super::{Call, Contents, Kind, Line, Origin};
use super::*;

fn run() -> Run {
    let log = RecordLog::new();
    let ram = Ram::new("ram0", 1 << 20).with_volatile_cache();
    let mut base = Store::new(1 << 20);
    base.write_slice(8192, &[1; 5000]);
    ram.replace(base.clone());
    let disk = Record::new(Arc::new(ram), &log);
    let write =
        |offset, byte: u8, fua| Request::Write { offset, data: vec![byte; 1024].into(), fua };
    disk.submit(write(0, 7, false)).wait().unwrap();
    let printed = log.note(super::super::LINE, [0; 3]);
    disk.submit(Request::Flush).wait().unwrap();
    let started = log.note(1, [2, 3, 4]);
    disk.submit(Request::Discard { offset: 4096, len: 8192 }).wait().unwrap();
    disk.submit(write(512, 0, true)).wait().unwrap();
    let returned = Some(log.note(1, [5, 6, 7]));
    let contents = Some(Contents { size: 3, digest: 1 << 100 });
    let call = Call {
        kind: Kind::Rename,
        origin: Origin::Kernel,
        promises: false,
        unplaced: true,
        started,
        returned,
        failed: false,
        ino: 12,
        replaced: 13,
        path: b"a\xff".to_vec(),
        other: b"b".to_vec(),
        offset: 0,
        contents,
        lost: None,
    };
    Run {
        about: [("fs", "ext4"), ("judge", "true")].map(|(k, v)| (k.into(), v.into())).into(),
        bases: vec![base],
        recording: log.take(),
        lines: vec![Line { printed, text: b"done".to_vec() }],
        calls: vec![call],
    }
}

fn saved(run: &Run) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    save(run, &path).unwrap();
    std::fs::read(path).unwrap()
}

fn bytes() -> Vec<u8> {
    saved(&run())
}

#[test]
fn a_run_comes_back_whole() {
    let run = run();
    let back = parse(&saved(&run)).unwrap();
    assert_eq!((&back.about, &back.lines), (&run.about, &run.lines));
    assert_eq!(back.bases, run.bases);
    assert_eq!(back.recording.devices(), run.recording.devices());
    let requests = |run: &Run| -> Vec<_> {
        run.recording.events().iter().map(|e| (e.submitted.tick, e.action.clone())).collect()
    };
    assert_eq!(requests(&back), requests(&run));
    let ticks = |run: &Run| -> Vec<_> {
        run.calls.iter().map(|c| (c.started.tick, c.returned.map(|r| r.tick))).collect()
    };
    assert_eq!(ticks(&back), ticks(&run));
    assert_eq!(back.calls, run.calls);
    assert_eq!(back.recording.last_crash_point(), run.recording.last_crash_point());
    let notes = |run: &Run| run.recording.notes().iter().map(|n| n.detail).collect::<Vec<_>>();
    assert_eq!(notes(&back), notes(&run));
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let good = bytes();
    let said = |bytes: &[u8]| parse(bytes).unwrap_err();
    assert!(said(b"").contains("no recording"));
    assert!(said(&[0; 100]).contains("no recording"));
    for version in [1, 2, 3, 9] {
        let mut other = good.clone();
        other[MAGIC.len()] = version;
        let said = said(&other);
        assert!(said.contains(&format!("of version {version};")), "{said}");
        assert!(said.contains("record the run again"), "{said}");
    }
    for place in HEAD..good.len() {
        let mut flipped = good.clone();
        flipped[place] ^= 1;
        assert!(said(&flipped).contains("checksum"), "{place}: {}", said(&flipped));
        said(&good[..place]);
    }
}

/// With the checksum made right again, as only somebody with bad intentions would.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let sum = crc32c::crc32c(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What was read can be cut.
fn read_and_cut(bytes: Vec<u8>) {
    let Ok(run) = parse(&resealed(bytes)) else { return };
    for (device, base) in run.bases.iter().enumerate() {
        let last = run.recording.last_crash_point();
        let at = run.recording.at(DeviceId(device as u32), last);
        at.contents_where(base, 0, |_, _| true);
    }
}

/// Numbers, lengths among them, are as large as can be; what is there ends anywhere.
#[test]
fn no_length_is_believed() {
    const LARGEST: [u8; 10] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let good = bytes();
    for place in HEAD..good.len() - 4 {
        for large in [&LARGEST[..], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0xff, 0x7f], &[0]] {
            let changed = [&good[..place], large, &good[place + 1..]].concat();
            read_and_cut(changed);
        }
        assert!(parse(&resealed(good[..place + 4].to_vec())).is_err(), "{place}");
    }
}

proptest! {
    #[test]
    fn bad_files_are_refused_or_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        read_and_cut(bytes);
    }
}
