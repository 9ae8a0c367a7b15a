//! Texts of strace, and the traces that they become.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use super::{ImportOptions, ImportSummary, TextInput, import};
use crate::format::{CallFlag, CallOp, FileState, TraceCall, TraceEntry, TraceThread};
use crate::reader::TraceReader;
use crate::replay::{ReplayPace, TraceSource};

struct Imported {
    bytes: Vec<u8>,
    summary: ImportSummary,
    threads: Vec<TraceThread>,
    states: Vec<FileState>,
    calls: Vec<TraceCall>,
}

/// Lines without their time and duration, which are those of their number: the first one is at 0,
/// each lasts 10 us.
fn imported(lines: &[&str]) -> Imported {
    let timed = lines.iter().enumerate().map(|(n, line)| {
        let (thread, rest) = line.split_once(' ').unwrap_or((line, ""));
        let lasts = if rest.contains(" = ") { " <0.000010>" } else { "" };
        format!("{thread} 1795915512.{:06} {rest}{lasts}\n", n * 100)
    });
    of_text(timed.collect()).unwrap()
}

fn of_text(text: String) -> crate::Result<Imported> {
    let input = TextInput {
        name: "s".into(),
        text: Box::new(Cursor::new(text.into_bytes())),
        written_seconds: None,
    };
    let options = ImportOptions { folder: "/w".into(), unit_ns: None };
    let mut bytes = Vec::new();
    let summary = import(vec![input], &options, &mut bytes)?;
    let mut reader = TraceReader::new(Cursor::new(bytes.clone()), false)?;
    let (mut threads, mut states, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(entry) = reader.next_entry()? {
        match entry {
            TraceEntry::Thread(thread) => threads.push(thread),
            TraceEntry::File(state) => states.push(state),
            TraceEntry::Call(call) => calls.push(call),
            TraceEntry::End(_) => {}
        }
    }
    Ok(Imported { bytes, summary, threads, states, calls })
}

impl Imported {
    fn ops(&self) -> Vec<CallOp> {
        self.calls.iter().map(|call| call.op).collect()
    }

    fn count(&self, op: CallOp) -> usize {
        self.calls.iter().filter(|call| call.op == op).count()
    }

    /// What a replay in a folder of this machine makes otherwise.
    fn differences(&self) -> BTreeMap<String, (u64, u64)> {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn steadfast_vfs::FileSystem> =
            Arc::new(steadfast_vfs::HostFs::open(folder.path()).unwrap());
        let trace: Arc<dyn TraceSource> = Arc::new(self.bytes.clone());
        let how = (ReplayPace::FlatOut, Arc::new(()) as Arc<dyn crate::replay::ReplayObserver>);
        let (found, _) = crate::replay::run(&trace, &fs, how, || Ok(())).unwrap();
        found.differences.kinds
    }

    fn left_out(&self) -> Vec<(&str, u64)> {
        self.summary.left_out.iter().map(|(why, of)| (why.as_str(), of.lines)).collect()
    }
}

/// vfork(2) returns when the child has begun another program, and clone(2) may be late.
#[test]
fn a_child_begins_where_its_parents_call_does() {
    let found = imported(&[
        r#"1 openat(AT_FDCWD</w>, "f", O_WRONLY|O_CREAT, 0666) = 3</w/f>"#,
        "1 vfork( <unfinished ...>",
        "2 dup2(3</w/f>, 1) = 1</w/f>",
        r#"2 openat(AT_FDCWD</w>, "g", O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 4</w/g>"#,
        "2 execve(\"/bin/echo\", [...], 0x7 /* 3 vars */ <unfinished ...>",
        "1 <... vfork resumed>) = 2",
        "1 close(3</w/f>) = 0",
        "2 <... execve resumed>) = 0",
        "2 write(1</w/f>, \"\"..., 2) = 2",
        "2 +++ exited with 0 +++",
    ]);
    use CallOp::{Close, Create, Write};
    // The program closes `g` as it begins, and its end closes `f`.
    assert_eq!(found.ops(), [Create, Create, Close, Write, Close]);
    assert_eq!(found.calls[2].file, found.calls[1].file);
    assert_eq!((found.calls[4].file, found.calls[4].thread), (found.calls[0].file, 2));
    let parents: Vec<_> = found.threads.iter().map(|t| (t.thread, t.process, t.parent)).collect();
    assert_eq!(parents, [(1, 1, None), (2, 2, Some(1))]);
    assert!(found.differences().is_empty());
}

#[test]
fn threads_and_clone_files_share_descriptors_and_fork_does_not() {
    let of = |flags: &str| {
        let clone = format!("1 clone(child_stack=NULL, flags={flags}) = 2");
        let found = imported(&[
            "1 getpid() = 1",
            &clone,
            r#"2 openat(AT_FDCWD</w>, "f", O_WRONLY|O_CREAT, 0666) = 3</w/f>"#,
            "1 write(3</w/f>, \"\"..., 2) = 2",
        ]);
        (found.count(CallOp::Write), found.threads.last().unwrap().process)
    };
    assert_eq!(of("CLONE_VM|CLONE_FILES|CLONE_THREAD"), (1, 1));
    assert_eq!(of("CLONE_VM|CLONE_FILES"), (1, 2));
    assert_eq!(of("CLONE_CHILD_SETTID|SIGCHLD"), (0, 2));
}

#[test]
fn a_duplicate_is_closed_with_its_last_descriptor() {
    let found = imported(&[
        r#"1 openat(AT_FDCWD</w>, "f", O_RDWR|O_CREAT, 0666) = 3</w/f>"#,
        "1 dup(3</w/f>) = 4</w/f>",
        "1 close(3</w/f>) = 0",
        "1 write(4</w/f>, \"\"..., 2) = 2",
        "1 close(4</w/f>) = 0",
        "1 write(4</w/f>, \"\"..., 2) = -1 EBADF (Bad file descriptor)",
    ]);
    assert_eq!(found.ops(), [CallOp::Create, CallOp::Write, CallOp::Close]);
    assert_eq!((found.calls[1].handle, found.calls[2].start), (Some(1), 400_000));
}

#[test]
fn an_open_in_a_folder_that_is_not_there_yet_makes_none() {
    let found = imported(&[
        r#"1 openat(AT_FDCWD</w>, "b/c", O_WRONLY|O_CREAT, 0666) = -1 ENOENT (No such file)"#,
        r#"1 mkdir("b", 0777) = 0"#,
        r#"1 mkdir("b", 0777) = -1 EEXIST (File exists)"#,
        r#"1 openat(AT_FDCWD</w>, "b/c", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3</w/b/c>"#,
        r#"1 openat(AT_FDCWD</w>, "b/c", O_WRONLY|O_CREAT|O_EXCL, 0666) = -1 EEXIST (File exists)"#,
        r#"1 unlink("b/d") = -1 ENOENT (No such file)"#,
        r#"1 rmdir("b") = -1 ENOTEMPTY (Directory not empty)"#,
        r#"1 rename("b/d", "x/y") = -1 ENOENT (No such file)"#,
        r#"1 openat(AT_FDCWD</w>, "b/c", O_RDONLY) = -1 EACCES (Permission denied)"#,
        r#"1 openat(AT_FDCWD</w>, "b/new", O_RDONLY) = 4</w/b/new>"#,
    ]);
    assert!(found.states.is_empty(), "{:?}", found.states);
    assert_eq!((found.calls[0].op, found.calls[0].name.as_str()), (CallOp::Lookup, "b"));
    assert_eq!(found.differences(), BTreeMap::new());
    assert_eq!(found.left_out(), [("failed for a reason that a trace does not have", 1)]);
}

#[test]
fn what_is_written_through_a_link_is_in_its_file() {
    let found = imported(&[
        r#"1 openat(AT_FDCWD</w>, "y", O_WRONLY|O_CREAT, 0666) = 3</w/y>"#,
        r#"1 mkdir("sub", 0777) = 0"#,
        r#"1 symlinkat("../y", AT_FDCWD</w/sub>, "z") = 0"#,
        r#"1 openat(AT_FDCWD</w/sub>, "z", O_WRONLY) = 4</w/y>"#,
        "1 write(4</w/y>, \"\"..., 3) = 3",
        r#"1 symlink("sub", "s") = 0"#,
        r#"1 unlink("s/none") = -1 ENOENT (No such file)"#,
        r#"1 unlink("s/z") = 0"#,
        r#"1 openat(AT_FDCWD</w>, "sub", O_RDONLY|O_PATH) = 5</w/sub>"#,
    ]);
    assert_eq!(found.calls[4].file, found.calls[0].file);
    assert_eq!(found.calls[6].dir, found.calls[1].file);
    assert_eq!(found.differences(), BTreeMap::new());
    assert_eq!(found.left_out(), [("opened for its path alone (O_PATH)", 1)]);
}

#[test]
fn names_are_bytes() {
    let found = imported(&[
        concat!(
            r#"1 openat(AT_FDCWD</w/\303\274>, "\303\244\377", O_WRONLY|O_CREAT)"#,
            r#" = 3</w/\303\274/\303\244\377>"#
        ),
        r#"1 fsync(3</w/\303\274/\303\244\377>) = 0"#,
        r#"1 unlink("\303\244\377") = 0"#,
    ]);
    assert_eq!(found.ops(), [CallOp::Create, CallOp::Fsync, CallOp::Unlink]);
    assert_eq!((found.states[0].name.as_str(), found.calls[0].name.as_str()), ("ü", "ä%FF"));
    assert_eq!(found.differences(), BTreeMap::new());
}

#[test]
fn what_no_name_can_be_is_left_out_and_the_trace_can_be_read() {
    let long = "n".repeat(256);
    let deep = "a/".repeat(40_000);
    let open =
        |path: &str, end: &str| format!("1 openat(AT_FDCWD</w>, \"{path}\", O_RDONLY) = {end}");
    let lines = [
        open("f", "3</w/f>"),
        open(&format!("{long}/x"), "-1 ENAMETOOLONG (File name too long)"),
        open(&deep, "-1 ENOENT (No such file)"),
        open(&deep, &format!("4</w/{deep}>")),
        open("a\\0b", "-1 ENOENT (No such file)"),
        format!("1 symlink(\"{}\", \"l\") = 0", "t".repeat(4096)),
    ];
    let found = imported(&lines.each_ref().map(String::as_str));
    assert_eq!(found.ops(), [CallOp::Open, CallOp::Open]);
    let places: Vec<_> = found.summary.left_out.values().map(|of| of.lines).collect();
    assert_eq!(places, [4]);
}

#[test]
fn times_are_from_the_first_call_on_and_calls_in_order() {
    let found = imported(&[
        r#"1 openat(AT_FDCWD</w>, "f", O_RDWR|O_CREAT, 0666) = 3</w/f>"#,
        "1 clone(child_stack=NULL, flags=CLONE_FILES|CLONE_THREAD) = 2",
        "1 pwrite64(3</w/f>, \"\"..., 7, 0 <unfinished ...>",
        "2 pwrite64(3</w/f>, \"\"..., 8, 0 <unfinished ...>",
        "2 <... pwrite64 resumed>) = 8",
        "1 <... pwrite64 resumed>) = 7",
    ]);
    let times: Vec<_> = found.calls.iter().map(|c| (c.start, c.end, c.result)).collect();
    assert_eq!(times, [(0, 10_000, 0), (200_000, 210_000, 7), (300_000, 310_000, 8)]);
}

#[test]
fn appending_is_at_the_end_and_files_have_their_size() {
    let found = imported(&[
        r#"1 openat(AT_FDCWD</w>, "log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3</w/log>"#,
        "1 write(3</w/log>, \"\"..., 10) = 10",
        "1 pwrite64(3</w/log>, \"\"..., 5, 0) = 5",
        "1 write(3</w/log>, \"\"..., 1) = 1",
        r#"1 openat(AT_FDCWD</w>, "old", O_WRONLY|O_APPEND, 0666) = 4</w/old>"#,
        r#"1 newfstatat(4</w/old>, "", {st_mode=S_IFREG|0644, st_size=97}, AT_EMPTY_PATH) = 0"#,
        "1 write(4</w/old>, \"\"..., 2) = 2",
        r#"1 openat(AT_FDCWD</w>, "read", O_RDONLY) = 5</w/read>"#,
        "1 read(5</w/read>, \"\"..., 4096) = 100",
        "1 read(5</w/read>, \"\"..., 4096) = 0",
    ]);
    let offsets: Vec<_> =
        found.calls.iter().filter(|c| c.op == CallOp::Write).map(|c| c.offset).collect();
    assert_eq!(offsets, [0, 10, 15, 97]);
    let sizes: Vec<_> = found.states.iter().map(|s| (s.name.as_str(), s.size)).collect();
    assert_eq!(sizes, [("old", 97), ("read", 100)]);
    assert_eq!(found.differences(), BTreeMap::new());
}

#[test]
fn a_range_of_zeros_may_keep_the_size() {
    let found = imported(&[
        r#"1 openat(AT_FDCWD</w>, "f", O_RDWR|O_CREAT, 0666) = 3</w/f>"#,
        "1 write(3</w/f>, \"\"..., 10) = 10",
        "1 fallocate(3</w/f>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_ZERO_RANGE, 0, 4096) = 0",
        "1 pread64(3</w/f>, \"\"..., 4096, 0) = 10",
        "1 fallocate(3</w/f>, FALLOC_FL_ZERO_RANGE, 0, 4096) = 0",
        "1 pread64(3</w/f>, \"\"..., 4096, 0) = 4096",
    ]);
    assert_eq!(
        (&found.calls[2].flags[..], found.calls[4].flags.len()),
        (&[CallFlag::KeepSize][..], 0)
    );
    let differences = found.differences();
    // Where the machine's file system cannot do that.
    let is_refused = differences.keys().any(|what| what.contains("not supported"));
    assert!(differences.is_empty() || is_refused, "{differences:?}");
}

#[test]
fn lines_that_are_not_understood_are_counted() {
    let found = imported(&[
        "1 wait4(-1, 0x7ffd, WNOHANG, NULL) = -1 ECHILD (No child processes)",
        r#"1 openat(AT_FDCWD</w>, "f", O_RDONLY) = 3</w/f>"#,
        "1 read(3</w/f>, \"\", 1) = what",
        "1 <... read resumed>) = 7",
        "1 read(3</w/f>, \"\", 1 <unfinished ...>",
        "one",
    ]);
    let left_out = [
        ("has not returned", 1),
        ("no call of files", 1),
        ("no line of strace -f -ttt", 1),
        ("not understood (is -T missing?)", 1),
        ("resumed, and its beginning is not there", 1),
    ];
    assert_eq!(found.left_out(), left_out);
    let first: Vec<_> = found.summary.left_out.values().filter_map(|of| of.first.clone()).collect();
    assert_eq!(first, ["s:5", "s:1", "s:6", "s:3", "s:4"]);
}

/// What many processes, descriptors and names cost grows as they do.
#[test]
fn many_processes_descriptors_and_renames_are_read_at_once() {
    let mut text = String::new();
    let mut time = 1_795_915_512_000_000u64;
    let mut line = |thread: u32, what: &str| {
        time += 20;
        let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
        text.push_str(&format!("{thread} {seconds}.{micros:06} {what} <0.000010>\n"));
    };
    line(1, "mkdir(\"/w/a\", 0777) = 0");
    for n in 0..2000 {
        let path = format!("/w/a/f{n}");
        line(1, &format!("open(\"{path}\", O_RDWR|O_CREAT) = {}<{path}>", n + 3));
    }
    let others = 2..4000;
    for n in others.clone() {
        line(1, &format!("clone(child_stack=NULL, flags=SIGCHLD) = {n}"));
    }
    for n in others {
        line(n, &format!("pwrite64(3</w/a/f0>, \"\"..., 1, {n}) = 1"));
        line(n, "close(4</w/a/f1>) = 0");
    }
    for n in 0..2000 {
        line(1, &format!("rename(\"/w/{}\", \"/w/{}\") = 0", ["a", "b"][n % 2], ["b", "a"][n % 2]));
    }
    let begun = std::time::Instant::now();
    let found = of_text(text).unwrap();
    assert_eq!((found.count(CallOp::Write), found.count(CallOp::Rename)), (3998, 2000));
    // Seconds in a debug build; it was minutes.
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}
