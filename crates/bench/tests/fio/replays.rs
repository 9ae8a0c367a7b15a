//! Logs that are replayed, in virtual time: a read takes 1 ms, a write 2 ms, an fsync 5 ms, a call
//! 1 us of processor time beside.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_bench::fio::FioResults;

use crate::memory::Behaviour;
use crate::{planned, planned_with, simulate_with};

/// What was run, and the calls behind the layout: us since the job began, what, where.
fn replay(lines: &str, log: &str) -> (FioResults, Vec<String>) {
    let ms = Duration::from_millis;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (read, write, fsync) = (ms(1), ms(2), ms(5));
    let noted = Some(Arc::clone(&calls));
    let behaviour = Behaviour { read, write, fsync, calls: noted, ..Behaviour::default() };
    let (results, _) = simulate_with(&format!("[r]\nread_iolog=l\n{lines}"), log, behaviour);
    assert_eq!(results.fault(), None);
    let calls = std::mem::take(&mut *calls.lock().unwrap());
    // Each file that is laid out is closed once.
    let laid_out = results.entries[0].job.files.iter().filter(|file| file.len > 0).count();
    let closes = calls.iter().enumerate().filter(|(_, call)| call.contains(" close "));
    let began = closes.map(|(at, _)| at + 1).take(laid_out).last().unwrap_or(0);
    let of = |call: &String| {
        let (us, what) = call.split_once(' ').unwrap();
        (us.parse::<u64>().unwrap(), what.to_owned())
    };
    let calls: Vec<(u64, String)> = calls[began..].iter().map(of).collect();
    let first = calls[0].0;
    let calls = calls.into_iter().map(|(us, what)| format!("{} {what}", us - first));
    (results, calls.collect())
}

const TWO: &str = "fio version 2 iolog\na add\nb add\na open\na write 0 4096\na write 4096 512\n\
                   a sync 0 0\nb open\nb read 8192 1024\na datasync 0 0\na close\nb close\n";

/// A request each 100 ms.
const THREE: &str = "fio version 3 iolog\n7 a add\n7 a open\n100007 a write 0 4096\n\
                     200007 a sync 0 0\n300007 a write 8192 4096\n300010 a datasync 0 0\n\
                     400007 a close\n";

#[test]
fn the_lines_of_a_log_are_done_in_its_order() {
    let (results, calls) = replay("rw=randread\nbs=64k\nsize=1g\n", TWO);
    let expected = [
        "0 open a",
        "2 write a 0+4096",
        "2003 write a 4096+512",
        "4004 sync a",
        "9005 open b",
        "9007 read b 8192+1024",
        "10008 datasync a",
        "15009 close a",
        "15010 close b",
    ];
    let whats = |calls: &[String]| -> Vec<String> {
        calls.iter().map(|call| call.split_once(' ').unwrap().1.to_owned()).collect()
    };
    assert_eq!(whats(&calls), whats(&expected.map(str::to_owned)));
    for (call, expected) in calls.iter().zip(expected) {
        let us = |text: &str| text.split_once(' ').unwrap().0.parse::<u64>().unwrap();
        assert!(us(call).abs_diff(us(expected)) < 50, "{call}; expected: {expected}");
    }
    let figures = &results.entries[0].figures;
    let [reads, writes] = figures.kinds.each_ref().map(|kind| (kind.requests, kind.bytes));
    assert_eq!((reads, writes, figures.syncs.moments.count), ((1, 1024), (2, 4608), 2));
    assert_eq!(results.entries[0].job.total, 5632);
    let notes = results.notes.join("\n");
    for name in ["rw", "bs", "size"] {
        assert!(notes.contains(&format!("'{name}' has no effect with read_iolog")), "{notes}");
    }
}

/// When each call but the first begins, in ms.
fn times(lines: &str, log: &str) -> Vec<u64> {
    replay(lines, log).1[1..].iter().map(|c| ms(c)).collect()
}

fn ms(call: &str) -> u64 {
    call.split_once(' ').unwrap().0.parse::<u64>().unwrap() / 1000
}

#[test]
fn times_are_kept_or_not() {
    assert_eq!(times("", THREE), [100, 200, 300, 302, 401]);
    assert_eq!(times("replay_no_stall=1\n", THREE), [0, 2, 7, 9, 14]);
    assert_eq!(times("replay_time_scale=200\n", THREE), [50, 100, 150, 152, 201]);
    assert_eq!(times("replay_time_scale=50\n", THREE), [200, 400, 600, 602, 801]);
    // As in fio, one that takes longer moves what follows.
    let late = "fio version 3 iolog\n0 a add\n0 a open\n0 a sync 0 0\n1000 a write 0 512\n\
                11000 a write 0 512\n10000 a write 0 512\n";
    assert_eq!(times("", late), [0, 5, 15, 17, 19]);
    assert_eq!(times("runtime=250ms\n", THREE), [100, 200, 249]);
    // Until so many ms after the beginning.
    let waits = "fio version 2 iolog\na add\na open\na wait 300 0\na write 0 512\na wait 300 0\n\
                 a write 0 512\na wait 400 0\n";
    assert_eq!(times("", waits), [300, 302, 399]);
    assert_eq!(times("replay_no_stall\n", waits), [0, 2, 4]);
    assert_eq!(times("thinktime=10ms\n", TWO)[..2], [0, 12]);
}

#[test]
fn what_is_said_of_the_log_is_done() {
    let of = |lines: &str| replay(lines, THREE).1.iter().map(|c| what(c)).collect::<Vec<_>>();
    fn what(call: &str) -> String {
        call.split_once(' ').unwrap().1.to_owned()
    }
    assert_eq!(of("replay_scale=2\n")[3], "write a 4096+4096");
    assert_eq!(of("replay_scale=3\nreplay_align=1k\n")[3], "write a 2048+4096");
    assert_eq!(
        of("replay_skip=sync\n"),
        ["open a", "write a 0+4096", "write a 8192+4096", "close a"]
    );
    // What is left out takes its time.
    assert_eq!(times("replay_skip=sync\n", THREE), [100, 300, 400]);
    let trims = format!("{THREE}400008 a trim 0 512\n");
    assert_eq!(replay("replay_skip=trim\n", &trims).1.len(), 6);
    let redirected = replay("replay_redirect=a\n", &TWO.replace("a ", "c "));
    let files: Vec<String> = redirected.1.iter().map(|c| what(c)).collect();
    assert_eq!(files.iter().filter(|call| call.ends_with("open a")).count(), 1, "{files:?}");
    assert!(files.contains(&"read a 8192+1024".into()) && files[7..].is_empty(), "{files:?}");
    let (results, calls) = replay("end_fsync=1\nfsync_on_close=1\n", THREE);
    assert_eq!(results.entries[0].figures.syncs.moments.count, 2);
    let behind: Vec<String> = calls[5..].iter().map(|c| what(c)).collect();
    assert_eq!(behind, ["sync a", "close a", "open a", "sync a", "close a"]);
}

#[test]
fn several_requests_are_in_flight() {
    let mut log = "fio version 2 iolog\na add\nb add\na open\nb open\n".to_owned();
    for at in 0..16 {
        log += &format!("a write {} 4096\n", at * 4096);
    }
    log += "a close\nb write 0 512\nb close\n";
    let (results, calls) = replay("ioengine=libaio\niodepth=4\n", &log);
    // Four rounds of 2 ms, and the last one.
    assert_eq!(results.entries[0].figures.elapsed_ns / 1_000_000, 10);
    let at = |what: &str| calls.iter().position(|call| call.ends_with(what)).unwrap();
    assert!(at("write a 61440+4096") < at("close a"), "{calls:?}");
    assert!(at("write b 0+512") < at("close b"), "{calls:?}");
}

#[test]
fn what_was_replayed_is_verified() {
    let (results, calls) = replay("verify=crc32c\n", THREE);
    assert_eq!(results.entries[0].figures.kinds[0].requests, 2);
    assert!(calls.iter().any(|call| call.ends_with("read a 8192+4096")), "{calls:?}");
    let of = |lines: &str, log: &str| {
        planned_with(&format!("[r]\nread_iolog=l\n{lines}\n"), log).unwrap_err()
    };
    let odd = THREE.replace("8192", "8191");
    assert!(of("verify=1", &odd).contains("multiples of 512 bytes"));
    assert!(of("direct=1", &odd).contains("a.fio:2: direct=1 needs multiples of 512 bytes"));
    let deep = of("verify=1\nioengine=libaio\niodepth=2", THREE);
    assert!(deep.contains("a.fio:3: verify of a log with iodepth"), "{deep}");
}

#[test]
fn files_are_there_as_far_as_they_are_read_first() {
    let log = "fio version 2 iolog\na add\nb add\na open\na write 0 4096\na read 0 4096\n\
               a read 8192 512\nb open\nb write 0 512\na close\nb close\n";
    let plan = planned_with("[r]\nread_iolog=l\nnumjobs=2\n", log).unwrap();
    let lens: Vec<u64> = plan.jobs[1].files.iter().map(|file| file.len).collect();
    assert_eq!((plan.jobs.len(), lens), (2, vec![8704, 0]));
    // As in fio, what is there is replayed on, and not replaced.
    let text = "[w]\nsize=4k\nfilename=a\n[r]\nstonewall\nread_iolog=l\n";
    let (results, fs) = simulate_with(text, log, Behaviour::default());
    let fault = &results.fault().unwrap().what;
    assert!(fault.starts_with("job 'r': a: reading 512 bytes at 8192: "), "{fault}");
    assert_eq!(fs.names(), ["a"]);
}

#[test]
fn lines_that_cannot_be_are_refused_with_their_place() {
    let head = "fio version 2 iolog\nf add\nf open\n";
    for (log, why) in [
        ("", "l:1: its first line is neither `fio version 2"),
        ("0 4096 8192\n", "l:1: its first line is neither `fio version 2"),
        ("fio version 4 iolog\nf add\n", "l:1: a log of version 4; 2 and 3 are read"),
        ("\x07tae....", "l:1: a binary log of blktrace is not supported"),
        (head, "l:3: the log ends, and nothing in it is read or written"),
        (&format!("{head}f wri"), "l:4: `wri`, which is not known"),
        (&format!("{head}f write 0"), "l:4: no offset and length"),
        (&format!("{head}f write x 5\n"), "l:4: no offset and length"),
        (&format!("{head}f\n"), "l:4: too short"),
        (&format!("{head}g write 0 512\n"), "l:4: 'g' was not added before"),
        (&format!("{head}g open\n"), "l:4: 'g' was not added before"),
        (&format!("{head}f close\nf write 0 512\n"), "l:5: 'f' is not open"),
        (&format!("{head}f close\nf sync 0 0\n"), "l:5: 'f' is not open"),
        (&format!("{head}f open\n"), "l:4: 'f' is open already"),
        (&format!("{head}f write 0 0\n"), "l:4: a request of 0 bytes"),
        (&format!("{head}f write 0 1073741825\n"), "l:4: a request of 1073741825 bytes: at most"),
        (&format!("{head}f read 1152921504606846976 1\n"), "l:4: 'f' has more than 1152921"),
        (&format!("{head}f trim 0 512\n"), "l:4: trims are of block devices"),
        (&format!("{head}{} add\n", "x".repeat(9000)), "l:4: a line of more than 8192 bytes"),
        (&format!("{head}../f add\nf write 0 1\n"), "l:4: '../f': \"..\" may lead out"),
        ("fio version 3 iolog\nf add\n", "l:2: no time at its beginning"),
        ("fio version 3 iolog\n1 f add\n2 f wait 5 0\n", "l:3: a wait, and version 3 has times"),
    ] {
        let found = planned_with("[r]\nread_iolog=l\n", log).unwrap_err();
        assert!(found.starts_with(why), "{log}: {found}");
    }
    let cut = format!("{head}f write 0 4");
    let plan = planned_with("[r]\nread_iolog=l\n", &cut).unwrap();
    assert_eq!(plan.notes, ["l:4: the line has no end: was the log cut off?"]);
    for (lines, why) in [
        ("read_iolog=none", "a.fio:2: read_iolog none: no such file"),
        ("read_iolog=l:l", "several logs are not supported"),
        ("read_iolog=-", "and not the standard input"),
        ("replay_align=3000", "'3000' is no power of 2"),
        ("replay_time_scale=0", "'0' is not from 1 to"),
        ("replay_skip=reads", "'reads' is not one of read, write, trim, sync"),
        ("merge_blktrace_file=x", "option 'merge_blktrace_file' of fio is not supported: logs of"),
    ] {
        let found = planned(&format!("[r]\n{lines}\n")).unwrap_err();
        assert!(found.contains(why), "{lines}: {found}");
    }
}
