//! Calls, and what each waits for.

use super::*;

fn thread(thread: u32, process: u32, parent: Option<u32>) -> TraceThread {
    TraceThread { thread, process, parent, name: String::new(), waited: Vec::new() }
}

fn ordered(threads: &[TraceThread], calls: &mut [TraceCall], trip: u64) -> Vec<(Vec<u64>, u64)> {
    let trip = Trip { median_ns: trip, ..Trip::default() };
    let mut order = CallOrder::new(Some(trip));
    threads.iter().for_each(|thread| order.thread(thread));
    calls.iter_mut().for_each(|call| order.call(call));
    calls.iter().map(|call| (call.after.clone(), call.think)).collect()
}

fn on(op: CallOp, thread: u32, (start, end): (u64, u64), file: u64) -> TraceCall {
    TraceCall { file: Some(file), ..TraceCall::new(op, thread, start, end) }
}

#[test]
fn a_thread_waits_for_itself_and_thinks_in_between() {
    let mut calls = [on(CallOp::Write, 1, (5, 10), 3), on(CallOp::Write, 1, (17, 20), 4)];
    let found = ordered(&[thread(1, 1, None)], &mut calls, 4);
    assert_eq!(found, [(vec![], 1), (vec![1], 3)]);
}

#[test]
fn a_files_calls_follow_one_another_unless_both_read() {
    let threads = [1, 2, 3].map(|n| thread(n, n, None));
    let mut calls = [
        on(CallOp::Write, 1, (0, 10), 3),
        on(CallOp::Read, 2, (12, 20), 3),
        on(CallOp::Read, 3, (13, 30), 3),
        on(CallOp::Write, 1, (25, 40), 3),
        on(CallOp::Write, 2, (50, 60), 3),
    ];
    let found = ordered(&threads, &mut calls, 0);
    assert_eq!(found[1], (vec![1], 2));
    assert_eq!(found[2], (vec![2], 3));
    // The second read had not ended when it began.
    assert_eq!(found[3], (vec![2, 3], 5));
    assert_eq!(found[4], (vec![1, 2, 3], 10));
}

#[test]
fn calls_at_the_same_time_are_both_waited_for() {
    let threads = [1, 2, 3].map(|n| thread(n, n, None));
    let mut calls = [
        on(CallOp::Write, 1, (0, 100), 3),
        on(CallOp::Write, 2, (10, 50), 3),
        on(CallOp::Read, 3, (120, 130), 3),
    ];
    let found = ordered(&threads, &mut calls, 0);
    assert_eq!(found[2], (vec![1, 2], 20));
}

/// On a slower file system syncs of several threads are under way at once, as there.
#[test]
fn a_sync_waits_for_changes_and_nobody_for_it() {
    let threads = [1, 2].map(|n| thread(n, n, None));
    let mut calls = [
        on(CallOp::Write, 1, (0, 10), 3),
        on(CallOp::Fsync, 2, (20, 30), 3),
        on(CallOp::Fsync, 1, (40, 50), 3),
        on(CallOp::Write, 2, (60, 70), 3),
    ];
    let found = ordered(&threads, &mut calls, 0);
    assert_eq!(found.map(|f| f.0), [vec![], vec![1], vec![2], vec![2, 3]]);
}

#[test]
fn names_have_generations() {
    let threads = [1, 2].map(|n| thread(n, n, None));
    let named = |op, thread, time, file| TraceCall {
        dir: Some(0),
        name: "n".into(),
        ..on(op, thread, time, file)
    };
    let mut calls = [
        named(CallOp::Create, 1, (0, 1), 5),
        named(CallOp::Lookup, 2, (2, 3), 5),
        named(CallOp::Unlink, 1, (4, 5), 5),
        named(CallOp::Create, 2, (6, 7), 6),
    ];
    let found = ordered(&threads, &mut calls, 0);
    assert_eq!(found.map(|f| f.0), [vec![], vec![1], vec![1, 2], vec![1, 2]]);
}

trait MapAll<T> {
    fn map<U>(self, of: impl FnMut(T) -> U) -> Vec<U>;
}

impl<T> MapAll<T> for Vec<T> {
    fn map<U>(self, of: impl FnMut(T) -> U) -> Vec<U> {
        self.into_iter().map(of).collect()
    }
}

#[test]
fn processes_begin_after_and_are_waited_for() {
    let threads = [thread(1, 1, None), thread(2, 2, Some(1))];
    let mut calls = [
        on(CallOp::Write, 1, (0, 10), 3),
        on(CallOp::Write, 2, (20, 30), 4),
        on(CallOp::Write, 2, (40, 50), 4),
        on(CallOp::Write, 1, (60, 70), 3),
        // It has made calls since: it waits no more.
        on(CallOp::Write, 1, (80, 90), 3),
    ];
    let found = ordered(&threads, &mut calls, 0);
    let after: Vec<Vec<u64>> = found.map(|f| f.0);
    assert_eq!(after, [vec![], vec![1], vec![1], vec![1, 3], vec![1]]);
}

/// A shell that makes no calls itself: its commands follow one another. So do a process and the
/// threads that it starts.
#[test]
fn commands_of_a_shell_and_new_threads_wait() {
    let waits =
        |waited: &[u32], n| TraceThread { waited: waited.to_vec(), ..thread(n, n, Some(1)) };
    let threads = [waits(&[], 2), waits(&[2], 3), thread(4, 3, Some(1))];
    let mut calls = [
        on(CallOp::Write, 2, (0, 10), 3),
        on(CallOp::Write, 3, (20, 30), 4),
        on(CallOp::Write, 4, (40, 50), 5),
    ];
    let found = ordered(&threads, &mut calls, 0);
    assert_eq!(found, [(vec![], 0), (vec![1], 10), (vec![1], 10)]);
}

/// What it has run is its own, without what a trip runs; what it slept beside the answer, too.
#[test]
fn a_thread_thinks_as_long_as_it_ran_or_slept() {
    let trip = Trip { median_ns: 30_000, run_ns: 5_000, ..Trip::default() };
    let think = |run: (u64, u64, u64), requests| {
        let mut order = CallOrder::new(Some(trip.clone()));
        order.thread(&thread(1, 1, None));
        let began = ThreadRun { ran_ns: 1_000, queued_ns: 0, times: 1 };
        let first = CallAside { run: Some(began), ..CallAside::default() };
        order.call_beside(&mut on(CallOp::Write, 1, (0, 10_000), 3), first);
        let (ran_ns, queued_ns, times) = run;
        let run = Some(ThreadRun { ran_ns, queued_ns, times });
        let mut call = on(CallOp::Write, 1, (1_010_000, 1_020_000), 3);
        order.call_beside(&mut call, CallAside { requests, run, ..CallAside::default() });
        call.think
    };
    // The trip was long this time.
    assert_eq!(think((9_000, 0, 2), 0), 3_000);
    assert_eq!(think((3_000, 0, 2), 0), 0);
    assert_eq!(think((14_000, 0, 3), 1), 3_000);
    // It has waited for something, or for a processor.
    assert_eq!(think((9_000, 100_000, 3), 0), 3_000 + 1_000_000 - 8_000 - 100_000 - 25_000);
    assert_eq!(think((9_000_000, 0, 2), 0), 1_000_000);
}

/// The kernel lets go of a file by itself, and the thread goes on beside it.
#[test]
fn a_thread_that_goes_on_beside_its_call_waits_for_those_before() {
    let mut calls = [
        on(CallOp::Create, 1, (0, 10), 3),
        on(CallOp::Close, 1, (20, 90), 3),
        on(CallOp::Create, 1, (40, 50), 4),
        on(CallOp::Write, 1, (60, 70), 5),
        on(CallOp::Write, 1, (95, 99), 5),
    ];
    let found = ordered(&[thread(1, 1, None)], &mut calls, 0);
    let after: Vec<Vec<u64>> = found.map(|f| f.0);
    assert_eq!(after, [vec![], vec![1], vec![2], vec![1], vec![1, 3]]);
}

#[test]
fn a_thread_waits_for_another_one_that_ended_meanwhile() {
    let mut order = CallOrder::new(None);
    [1, 2].iter().for_each(|n| order.thread(&thread(*n, 1, None)));
    let mut call = |thread, times, ended: &[u32]| {
        let mut call = on(CallOp::Write, thread, times, thread.into());
        order.call_beside(&mut call, CallAside { ended: ended.to_vec(), ..CallAside::default() });
        (call.after, call.think)
    };
    call(1, (0, 10), &[]);
    call(2, (20, 30), &[]);
    call(2, (500, 600), &[]);
    assert_eq!(call(1, (700, 800), &[2]), (vec![1, 3], 100));
}

/// Another thread's call ended while it slept: what it was woken by comes after that.
#[test]
fn a_thread_that_was_woken_waits_for_who_went_on() {
    let trip = Trip { median_ns: 1_000, run_ns: 100, ..Trip::default() };
    let mut order = CallOrder::new(Some(trip));
    [1, 2, 3].iter().for_each(|n| order.thread(&thread(*n, *n, None)));
    let mut call = |thread, times, (ran_ns, switches)| {
        let mut call = on(CallOp::Write, thread, times, thread.into());
        let run = Some(ThreadRun { ran_ns, queued_ns: 0, times: switches });
        order.call_beside(&mut call, CallAside { run, ..CallAside::default() });
        (call.after, call.think)
    };
    call(1, (0, 1_000), (0, 1));
    call(2, (2_000, 3_000), (0, 1));
    call(3, (80_000, 81_000), (0, 1));
    // Under way still.
    call(2, (98_000, 120_000), (5_000, 2));
    // It slept from 2,000 on, and has run for 500 beside the trip.
    assert_eq!(call(1, (101_000, 102_000), (600, 3)), (vec![2, 4], 19_000));
    // It ran all the time, and nobody woke it.
    assert_eq!(call(1, (150_000, 151_000), (48_700, 4)), (vec![1], 48_000));
}

/// A write is under way when a file is opened that was made before it.
#[test]
fn what_a_call_under_way_has_waited_for_is_waited_for() {
    let threads = [1, 2, 3].map(|n| thread(n, n, None));
    let mut calls = [
        on(CallOp::Create, 1, (0, 10), 3),
        on(CallOp::Write, 1, (20, 90), 3),
        on(CallOp::Open, 2, (40, 50), 3),
        on(CallOp::Write, 3, (95, 99), 3),
    ];
    let found = ordered(&threads, &mut calls, 0);
    assert_eq!((found[2].0.clone(), found[3].0.clone()), (vec![2], vec![1, 2]));
}

/// What looks at the new name of a rename or a link waits for that, whatever file it finds.
#[test]
fn second_names_are_names() {
    for op in [CallOp::Rename, CallOp::Exchange, CallOp::Link] {
        let threads = [1, 2].map(|n| thread(n, n, None));
        let moves = TraceCall { to_dir: Some(0), to: "b".into(), ..on(op, 1, (0, 10), 5) };
        let looks = TraceCall {
            dir: Some(0),
            name: "b".into(),
            ..TraceCall::new(CallOp::Lookup, 2, 20, 30)
        };
        let found = ordered(&threads, &mut [moves, looks], 0);
        assert_eq!(found[1], (vec![1], 10), "{op}");
    }
}

/// A folder is synced, or listed, after what was made in it.
#[test]
fn a_sync_of_a_folder_follows_its_names() {
    for op in [CallOp::Fsyncdir, CallOp::List] {
        let threads = [1, 2].map(|n| thread(n, n, None));
        let makes =
            TraceCall { dir: Some(7), name: "a".into(), ..on(CallOp::Create, 1, (0, 10), 8) };
        let found = ordered(&threads, &mut [makes, on(op, 2, (20, 30), 7)], 0);
        assert_eq!(found[1], (vec![1], 10), "{op}");
    }
}
