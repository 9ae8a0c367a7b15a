use std::sync::Arc;

use proptest::prelude::*;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::record::{Record, RecordLog};
use steadfast_devices::source::Ram;

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
    let back = parse(saved(&run).into()).unwrap();
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
    let said = |bytes: &[u8]| parse(Bytes::copy_from_slice(bytes)).unwrap_err();
    assert!(said(b"").contains("no recording"));
    assert!(said(&[0; 100]).contains("no recording"));
    let mut newer = good.clone();
    newer[16] = 9;
    assert!(said(&newer).contains("version 9"), "{}", said(&newer));
    let mut flipped = good.clone();
    flipped[60] ^= 1;
    assert!(said(&flipped).contains("checksum"), "{}", said(&flipped));
    for len in [20, 30, good.len() / 2, good.len() - 1] {
        said(&good[..len]);
    }
}

/// With the checksums made right again, as only somebody with bad intentions would.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 20;
    while at + 16 <= bytes.len() {
        let len = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap());
        let Some(end) = usize::try_from(len).ok().and_then(|len| (at + 16).checked_add(len)) else {
            break;
        };
        if end > bytes.len() {
            break;
        }
        let sum = crc32c::crc32c(&bytes[at + 16..end]);
        bytes[at + 12..at + 16].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
    bytes
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
        if let Ok(run) = parse(resealed(bytes).into()) {
            // What was read can be cut.
            for (device, base) in run.bases.iter().enumerate() {
                let last = run.recording.last_crash_point();
                let at = run.recording.at(DeviceId(device as u32), last);
                at.contents_where(base, 0, |_, _| true);
            }
        }
    }
}
