//! Replays in a folder of this machine, noted as a program's calls are.

use std::io::{Seek, SeekFrom};

use steadfast_runtime::Sim;
use steadfast_vfs::HostFs;

use super::*;
use crate::format::{
    CallFlag, FORMAT, FileKind, FileState, NameForm, TraceEntry, TraceHeader, TraceOrigin,
    TraceThread, VERSION,
};
use crate::order::CallOrder;
use crate::record::RecordedFs;
use crate::writer::TraceWriter;

fn header() -> TraceHeader {
    TraceHeader {
        format: FORMAT.into(),
        version: VERSION,
        source: TraceOrigin::Synthetic,
        program: Vec::new(),
        trip: None,
        direct: false,
        names: NameForm::Kept,
        not_seen: Vec::new(),
    }
}

fn trace(states: Vec<FileState>, calls: Vec<TraceCall>) -> Arc<dyn TraceSource> {
    let mut writer = TraceWriter::new(Vec::new(), &header()).unwrap();
    let mut order = CallOrder::new(None);
    let thread =
        TraceThread { thread: 1, process: 1, parent: None, name: String::new(), waited: vec![] };
    order.thread(&thread);
    writer.add(&TraceEntry::Thread(thread)).unwrap();
    states.into_iter().for_each(|state| writer.add(&TraceEntry::File(state)).unwrap());
    for mut call in calls {
        order.call(&mut call);
        writer.add(&TraceEntry::Call(call)).unwrap();
    }
    let end = TraceEnd { calls: 0, at: 0, status: Some(0), interrupted: false };
    Arc::new(writer.end(end).unwrap())
}

fn regular(file: u64, name: &str, size: u64) -> FileState {
    let (kind, target) = (FileKind::Regular, String::new());
    FileState { file, kind, size, dir: Some(0), name: name.into(), target }
}

/// A call of 10 ns, the `n`th from the beginning, each a second after the one before.
fn call(op: CallOp, n: u64) -> TraceCall {
    TraceCall::new(op, 1, n * 1_000_000_000, n * 1_000_000_000 + 10)
}

fn named(op: CallOp, n: u64, (dir, name, file): (u64, &str, u64)) -> TraceCall {
    TraceCall { dir: Some(dir), name: name.into(), file: Some(file), ..call(op, n) }
}

fn on_handle(
    op: CallOp,
    n: u64,
    (file, handle): (u64, u64),
    (offset, len): (u64, u64),
) -> TraceCall {
    let result = if matches!(op, CallOp::Read | CallOp::Write) { len as i64 } else { 0 };
    TraceCall { file: Some(file), handle: Some(handle), offset, len, result, ..call(op, n) }
}

fn pace() -> (ReplayPace, Arc<dyn ReplayObserver>) {
    (ReplayPace::FlatOut, Arc::new(()))
}

/// What a replay asks of a file system, as it is recorded there, and the differences.
fn replayed(trace: &Arc<dyn TraceSource>) -> (Vec<TraceCall>, BTreeMap<String, (u64, u64)>) {
    let folder = tempfile::tempdir().unwrap();
    let mut written = tempfile::tempfile().unwrap();
    let host = Arc::new(HostFs::open(folder.path()).unwrap());
    let out = Box::new(written.try_clone().unwrap());
    let recorder = Arc::new(RecordedFs::new(host, out, header()).unwrap());
    recorder.begin(None);
    let fs: Arc<dyn FileSystem> = Arc::clone(&recorder) as _;
    let (found, _) = run(trace, &fs, pace(), || Ok(())).unwrap();
    recorder.end(recorder.time(), Some(0), false).unwrap();
    written.seek(SeekFrom::Start(0)).unwrap();
    let mut reader = TraceReader::new(std::io::BufReader::new(written), false).unwrap();
    let mut calls = Vec::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        if let TraceEntry::Call(call) = entry {
            calls.push(call);
        }
    }
    (calls, found.differences.kinds)
}

#[test]
fn it_asks_for_what_the_program_has_asked_for() {
    use CallOp::{Close, Create, Fsync, Fsyncdir, Mkdir, Open, Read, Truncate, Unlink, Write};
    let open = |op, n, name, handle, flags: &[CallFlag]| TraceCall {
        handle: Some(handle),
        flags: flags.to_vec(),
        ..named(op, n, name)
    };
    let calls = vec![
        named(Mkdir, 0, (0, "d", 1)),
        open(Create, 1, (1, "a", 2), 1, &[CallFlag::Write, CallFlag::Dsync]),
        on_handle(Write, 2, (2, 1), (0, 100)),
        TraceCall { file: Some(2), offset: 50, ..call(Truncate, 3) },
        on_handle(Fsync, 4, (2, 1), (0, 0)),
        TraceCall { file: Some(1), ..call(Fsyncdir, 5) },
        on_handle(Close, 6, (2, 1), (0, 0)),
        TraceCall { file: Some(2), handle: Some(2), flags: vec![CallFlag::Read], ..call(Open, 7) },
        TraceCall { len: 100, ..on_handle(Read, 8, (2, 2), (0, 50)) },
        TraceCall { result: -2, file: None, ..named(Unlink, 9, (1, "none", 0)) },
        named(Unlink, 10, (1, "a", 2)),
    ];
    let (found, differences) = replayed(&trace(Vec::new(), calls.clone()));
    assert_eq!(differences, BTreeMap::new());
    // Before them `prepare` syncs; after them what is still open is closed.
    let first = found.iter().position(|call| call.op == Mkdir).unwrap();
    let found = &found[first..first + calls.len()];
    let of = |call: &TraceCall| (call.op, call.offset, call.len, call.result);
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), calls.iter().map(of).collect::<Vec<_>>());
    assert_eq!(found[2].flags, [CallFlag::Dsync]);
}

/// A trace may use a handle's number again, without a close of the first one.
#[test]
fn a_handle_is_the_file_opened_last() {
    let create = |n, name: (u64, &str, u64)| TraceCall {
        handle: Some(1),
        flags: vec![CallFlag::Write],
        ..named(CallOp::Create, n, name)
    };
    let calls = vec![
        create(0, (0, "a", 1)),
        create(1, (0, "b", 2)),
        on_handle(CallOp::Write, 2, (2, 1), (0, 9)),
    ];
    let (found, differences) = replayed(&trace(Vec::new(), calls));
    assert_eq!(differences, BTreeMap::new());
    let made: Vec<_> = found.iter().filter(|call| call.op == CallOp::Create).collect();
    let write = found.iter().find(|call| call.op == CallOp::Write).unwrap();
    assert_eq!((write.file, write.handle), (made[1].file, made[1].handle));
}

#[test]
fn files_of_the_beginning_have_their_size_and_other_reads_are_differences() {
    let open = TraceCall {
        file: Some(1),
        handle: Some(1),
        flags: vec![CallFlag::Read],
        ..call(CallOp::Open, 0)
    };
    let read = |n, result| TraceCall {
        result,
        ..on_handle(CallOp::Read, n, (1, 1), ((1 << 20) - 7, 100))
    };
    let states = vec![regular(1, "f", (1 << 20) + 13)];
    let (_, differences) = replayed(&trace(states, vec![open, read(1, 20), read(2, 21)]));
    assert_eq!(differences, [("read: 21 bytes recorded, 20 bytes now".to_owned(), (1, 2))].into());
}

#[test]
fn a_call_that_failed_is_recorded_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = tempfile::tempfile().unwrap();
    let host = Arc::new(HostFs::open(folder.path()).unwrap());
    let out = Box::new(written.try_clone().unwrap());
    let fs = RecordedFs::new(host, out, header()).unwrap();
    fs.begin(None);
    assert!(fs.unlink(fs.root(), b"none").is_err());
    fs.end(fs.time(), Some(0), false).unwrap();
    written.seek(SeekFrom::Start(0)).unwrap();
    let mut reader = TraceReader::new(std::io::BufReader::new(written), false).unwrap();
    let mut results = Vec::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        if let TraceEntry::Call(call) = entry {
            results.push((call.op, call.result));
        }
    }
    assert_eq!(results, [(CallOp::Unlink, -2)]);
}

/// In virtual time, in which a folder of this machine takes none.
#[test]
fn it_thinks_no_longer_than_the_program_did() {
    let calls: Vec<TraceCall> =
        (0..4).map(|n| TraceCall { file: Some(0), ..call(CallOp::List, n) }).collect();
    let elapsed = |pace| {
        let trace = trace(Vec::new(), calls.clone());
        let run = move || {
            let folder = tempfile::tempdir().unwrap();
            let fs: Arc<dyn FileSystem> = Arc::new(HostFs::open(folder.path()).unwrap());
            let how = (pace, Arc::new(()) as Arc<dyn ReplayObserver>);
            super::run(&trace, &fs, how, || Ok(())).unwrap().0.elapsed
        };
        Sim::new(0).run(run).unwrap()
    };
    assert_eq!(elapsed(ReplayPace::Recorded), Duration::from_nanos(3 * (1_000_000_000 - 10)));
    assert_eq!(elapsed(ReplayPace::FlatOut), Duration::ZERO);
}
