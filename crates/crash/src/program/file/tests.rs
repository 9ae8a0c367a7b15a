use std::sync::Arc;

use proptest::prelude::*;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::record::{Action, DeviceId, Record, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;

use super::super::{
    Call, CallDetail, CallKind, CallStacks, CodeFrame, Contents, FaultError, Line, Origin,
};
use super::*;

/// Bytes of the disk on which requests are repeated.
pub(super) const DISK: u64 = 64 << 30;

fn run() -> ProgramRun {
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
        kind: CallKind::Rename,
        origin: Origin::Kernel,
        promises: false,
        unplaced: true,
        started,
        returned,
        failed: true,
        injected: Some(FaultError::NoSpace),
        ino: 12,
        replaced: 13,
        path: b"a\xff".to_vec(),
        other: b"b".to_vec(),
        offset: 0,
        contents,
        lost: None,
        detail: CallDetail::Node { mode: 0o644, uid: 1, gid: 2, rdev: 3, target: b"to".to_vec() },
    };
    ProgramRun {
        about: [("fs", "ext4"), ("judge", "true")].map(|(k, v)| (k.into(), v.into())).into(),
        bases: vec![base],
        recording: log.take(),
        lines: vec![Line { printed, text: b"done".to_vec(), marked: true }],
        calls: vec![call],
        stacks: CallStacks {
            frames: vec![CodeFrame {
                line: Some(7),
                module: "/app".into(),
                ..CodeFrame::default()
            }],
            stacks: vec![vec![0]],
            of_calls: vec![1],
        },
    }
}

fn saved(run: &ProgramRun) -> Vec<u8> {
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
    let requests = |run: &ProgramRun| -> Vec<_> {
        run.recording.events().iter().map(|e| (e.submitted.tick, e.action.clone())).collect()
    };
    assert_eq!(requests(&back), requests(&run));
    let ticks = |run: &ProgramRun| -> Vec<_> {
        run.calls.iter().map(|c| (c.started.tick, c.returned.map(|r| r.tick))).collect()
    };
    assert_eq!(ticks(&back), ticks(&run));
    assert_eq!((&back.calls, &back.stacks), (&run.calls, &run.stacks));
    assert_eq!(back.recording.last_crash_point(), run.recording.last_crash_point());
    let notes =
        |run: &ProgramRun| run.recording.notes().iter().map(|n| n.detail).collect::<Vec<_>>();
    assert_eq!(notes(&back), notes(&run));
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let good = bytes();
    let said = |bytes: &[u8]| parse(bytes).unwrap_err();
    assert!(said(b"").contains("no recording"));
    assert!(said(&[0; 100]).contains("no recording"));
    for version in [1, 2, 3, 5, 8] {
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

#[test]
fn a_run_of_the_version_before_has_no_stacks() {
    let run = ProgramRun { stacks: CallStacks::default(), ..run() };
    let mut bytes = saved(&run);
    let none = postcard::to_allocvec(&run.stacks).unwrap().len();
    let end = bytes.len() - 4;
    bytes.drain(end - none..end);
    bytes[MAGIC.len()] = OLDEST as u8;
    assert_eq!(parse(&resealed(bytes)).unwrap().calls, run.calls);
}

#[test]
fn stacks_of_what_is_not_there_are_refused() {
    let mut run = run();
    run.stacks.of_calls = vec![0, 2];
    let said = parse(&saved(&run)).unwrap_err();
    assert!(said.contains("made by hand") && said.contains("stacks"), "{said}");
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

#[test]
fn what_only_somebody_with_bad_intentions_writes_is_called_so() {
    let good = bytes();
    let (payload, _) = good.split_at(good.len() - 4);
    let said = |payload: Vec<u8>| parse(&resealed([&payload[..], &[0; 4]].concat())).unwrap_err();
    let longer = said([payload, &[0; 2]].concat());
    assert!(longer.contains("made by hand") && longer.ends_with("2 bytes too many"), "{longer}");
    let large = said([&payload[..HEAD], &[0xff; 12]].concat());
    assert!(large.starts_with("it is damaged or made by hand"), "{large}");
}

/// A file that was written so, with a byte in each of so many MiB: at the start, and written.
fn spread(at_start: u64, written: u64) -> Vec<u8> {
    const SIZE: u64 = 64 << 30;
    let log = RecordLog::new();
    let disk = Record::new(Arc::new(Ram::new("ram0", SIZE)), &log);
    for place in 0..written {
        let request = Request::Write { offset: place << 20, data: vec![7; 512].into(), fua: false };
        disk.submit(request).wait().unwrap();
    }
    let mut base = Store::new(SIZE);
    (0..at_start).for_each(|place| base.write_slice(place << 20, &[1]));
    let (lines, calls) = (Vec::new(), Vec::new());
    saved(&ProgramRun {
        bases: vec![base],
        recording: log.take(),
        lines,
        calls,
        stacks: CallStacks::default(),
        ..run()
    })
}

/// The memory that contents take goes by the bytes of the file.
#[test]
fn contents_are_not_spread_over_more_than_the_file_can_fill() {
    // What was recorded is read.
    for bytes in [spread(3 << 12, 0), spread(0, 3 << 12)] {
        parse(&bytes).unwrap();
    }
    // One byte in each MiB, as nobody saves it.
    let run = run();
    let far = |tables: u64, of_base: bool| {
        let mut kept = SavedRun::of(&run);
        kept.spread_out(tables, of_base);
        let payload = postcard::to_stdvec(&kept).unwrap();
        parse(&resealed([MAGIC, &OLDEST.to_le_bytes()[..], &payload, &[0; 4]].concat()))
    };
    for of_base in [true, false] {
        assert!(far(1 << 12, of_base).is_ok());
        let said = far(1 << 16, of_base).unwrap_err();
        assert!(said.contains("MiB of devices"), "{said}");
    }
}

/// A device of 64 GiB on which so many discards of all of it are in doubt, or persists.
fn of_all(requests: u64, action: impl Fn() -> Action) -> Vec<u8> {
    let run = run();
    let mut kept = SavedRun::of(&run);
    kept.repeated(requests, action);
    let payload = postcard::to_stdvec(&kept).unwrap();
    resealed([MAGIC, &OLDEST.to_le_bytes()[..], &payload, &[0; 4]].concat())
}

/// A discard and a persist have a length and no bytes.
#[test]
fn a_length_without_bytes_takes_no_memory() {
    let discard = || Action::Discard { offset: 0, len: DISK };
    let run = parse(&of_all(3, discard)).unwrap();
    let last = run.recording.last_crash_point();
    let mut asked = 0;
    run.recording.at(DeviceId(0), last).contents_where(&run.bases[0], 0, |_, _| {
        asked += 1;
        false
    });
    assert!(asked <= 3 * 4097, "{asked}");
    let persist = || Action::Persist { offset: 0, len: DISK };
    for hostile in [of_all(300, discard), of_all(1, persist)] {
        let said = parse(&hostile).unwrap_err();
        assert!(said.contains("discards and persists are of more than"), "{said}");
        assert!(hostile.len() < 16 << 10, "{}", hostile.len());
    }
    // Discards that a flush has made durable are in doubt no more: as many as there are.
    let turn = std::cell::Cell::new(0);
    let flushed = || {
        turn.set(turn.get() + 1);
        if turn.get() % 3 == 0 { Action::Flush } else { discard() }
    };
    let mut run = parse(&of_all(3000, flushed)).unwrap();
    let mut asked = 0;
    let last = run.recording.last_crash_point();
    let at = run.recording.at(DeviceId(0), last);
    at.contents_where(&run.bases[0], at.settled(0), |_, _| {
        asked += 1;
        false
    });
    assert!(asked <= 6 * 4097, "{asked}");
    // Those that a lying device or another medium may lose are all in doubt.
    run.about.insert("media".into(), "erase-block".into());
    assert!(parse(&saved(&run)).unwrap_err().contains("more than"));
    // What is persisted in small pieces, is.
    parse(&of_all(300, || Action::Persist { offset: 0, len: 4096 })).unwrap();
}

#[test]
fn a_call_writes_no_more_than_the_kernel_lets_it() {
    let mut run = run();
    let contents = |size| Some(Contents { size, digest: 0 });
    run.calls[0] =
        Call { kind: CallKind::Write, contents: contents(0x7fff_f000), ..run.calls[0].clone() };
    parse(&saved(&run)).unwrap();
    run.calls[0].contents = contents(1 << 60);
    let said = parse(&saved(&run)).unwrap_err();
    assert!(said.contains("a call that writes"), "{said}");
    // What was synced or moved may be of any size.
    run.calls[0].kind = CallKind::Fsync;
    parse(&saved(&run)).unwrap();
}

/// Passes so many bytes on, then fails.
struct Full(usize, i32);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.0);
        self.0 -= fits;
        if fits > 0 { Ok(fits) } else { Err(io::Error::from_raw_os_error(self.1)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.0 > 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(self.1)) }
    }
}

#[test]
fn what_the_host_reports_is_reported() {
    const ENOSPC: i32 = 28;
    const EPIPE: i32 = 32;
    let run = run();
    let len = bytes().len();
    for (errno, kind) in [(ENOSPC, io::ErrorKind::StorageFull), (EPIPE, io::ErrorKind::BrokenPipe)]
    {
        for fits in 0..=len {
            let direct = write(&run, Full(fits, errno)).unwrap_err();
            assert_eq!((direct.raw_os_error(), direct.kind()), (Some(errno), kind), "{fits}");
        }
        let buffered = write(&run, io::BufWriter::new(Full(100, errno))).unwrap_err();
        assert_eq!(buffered.raw_os_error(), Some(errno));
        write(&run, Full(len + 1, errno)).unwrap();
    }
    let full = save(&run, Path::new("/dev/full")).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(ENOSPC), "{full}");
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
