//! When each call is made.
//!
//! The trace is read a window ahead. A call is due when those that it waited for have returned, and
//! the program has thought; of those that are due the one due first is made, by as many tasks as
//! calls are under way at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use steadfast_runtime::{Condvar, JoinHandle, Mutex, Nanos, is_simulated, now, spawn};
use steadfast_vfs::FileSystem;

use super::calls::{CallOutcome, Player};
use super::feed::CallFeed;
use super::prepare::ReplayPlan;
use super::{ReplayFigures, ReplayObserver, ReplayPace, TraceSource};
use crate::error::{Result, TraceError};
use crate::format::{CallOp, TraceCall};

/// Calls that are read before the first of them has returned, at most. One that is further on
/// cannot begin: with so many none has to wait for that.
const AHEAD: usize = 4096;
/// Of so many calls before those it is kept when they returned.
const PAST: usize = 16 * AHEAD;
/// Tasks, at most.
const TASKS_MAX: usize = 256;
/// In real time a sleep ends up to so much too late (timer slack, and the processor's own sleep):
/// the last of a think time is spent looking at the clock.
const LATE: Duration = Duration::from_micros(150);

/// A call that has not returned.
struct CallSlot {
    call: Option<TraceCall>,
    /// How many calls it still waits for.
    waits_for: usize,
    /// When the last one of those that have returned did.
    after: Nanos,
    /// Calls that wait for it.
    waited_for_by: Vec<u64>,
    returned: Option<Nanos>,
}

struct CallBoard {
    feed: CallFeed,
    pace: ReplayPace,
    begun: Nanos,
    /// The calls from number `first` on.
    window: VecDeque<CallSlot>,
    first: u64,
    /// When, and which.
    due: BinaryHeap<Reverse<(Nanos, u64)>>,
    /// When the calls before those returned, the last of them last.
    past: VecDeque<Nanos>,
    is_read: bool,
    /// How long before a call is due its task looks at the clock.
    look: Duration,
    /// When the call is due that some task waits for.
    awaited: Option<Nanos>,
    idle: usize,
    tasks: Vec<JoinHandle<()>>,
    done: ReplayFigures,
    failed: Option<TraceError>,
}

struct ReplayStage {
    board: Mutex<CallBoard>,
    changed: Condvar,
    player: Player,
}

/// Makes the calls of a trace, whose files of the beginning are there.
///
/// # Errors
/// The trace cannot be read.
pub fn replay(
    trace: &Arc<dyn TraceSource>,
    fs: &Arc<dyn FileSystem>,
    (pace, observer): (ReplayPace, Arc<dyn ReplayObserver>),
    plan: ReplayPlan,
) -> Result<ReplayFigures> {
    let feed = CallFeed::of(&**trace)?;
    let begun = now();
    let board = CallBoard {
        feed,
        pace,
        begun,
        window: VecDeque::new(),
        first: 0,
        due: BinaryHeap::new(),
        past: VecDeque::new(),
        is_read: false,
        look: if is_simulated() { Duration::ZERO } else { LATE },
        awaited: None,
        idle: 0,
        tasks: Vec::new(),
        done: ReplayFigures::default(),
        failed: None,
    };
    let tail = if pace == ReplayPace::Recorded { plan.tail } else { Duration::ZERO };
    let player = Player::new(fs, observer, plan);
    let stage = Arc::new(ReplayStage { board: Mutex::new(board), changed: Condvar::new(), player });
    work(&stage);
    loop {
        let Some(task) = stage.board.lock().tasks.pop() else { break };
        task.join().unwrap_or_else(|panic| panic.resume());
    }
    stage.player.end();
    let mut board = stage.board.lock();
    if let Some(e) = board.failed.take() {
        return Err(e);
    }
    board.done.elapsed += tail;
    board.done.tail = tail;
    Ok(std::mem::take(&mut board.done))
}

/// What one task does, until there is nothing left.
fn work(stage: &Arc<ReplayStage>) {
    let mut board = stage.board.lock();
    loop {
        board.read_ahead();
        let time = now();
        let next = board.due.peek().map(|Reverse(due)| *due);
        match next {
            Some((at, number)) if at <= time || board.pace == ReplayPace::FlatOut => {
                board.due.pop();
                let Some(call) = board.call_of(number) else { continue };
                if board.needs_another() {
                    if board.idle > 0 {
                        stage.changed.notify_one();
                    } else if board.tasks.len() + 1 < TASKS_MAX {
                        let also = Arc::clone(stage);
                        board.tasks.push(spawn("replay", move || work(&also)));
                    }
                }
                drop(board);
                let began = now();
                let made = stage.player.make(number, &call);
                let ended = now();
                board = stage.board.lock();
                board.returned(number, &call, (began, ended), made);
                if board.has_ended() {
                    stage.changed.notify_all();
                }
            }
            Some((at, _)) if board.awaited.is_none_or(|awaited| awaited > at) => {
                board.awaited = Some(at);
                let (left, look) = (at.since(time), board.look);
                if left > look {
                    board.idle += 1;
                    (board, _) = stage.changed.wait_timeout(board, left - look);
                    board.idle -= 1;
                } else {
                    drop(board);
                    while now() < at {
                        std::hint::spin_loop();
                    }
                    board = stage.board.lock();
                }
                board.awaited = board.awaited.filter(|awaited| *awaited != at);
            }
            None if board.has_ended() => return,
            // Who makes the call that is due next wakes another one for what comes after.
            _ => {
                board.idle += 1;
                board = stage.changed.wait(board);
                board.idle -= 1;
            }
        }
    }
}

impl CallBoard {
    fn has_ended(&self) -> bool {
        self.is_read && self.due.is_empty() && self.window.is_empty()
    }

    /// Whether the next call is due at once, or at a time that no task waits for.
    fn needs_another(&self) -> bool {
        let next = self.due.peek().map(|Reverse((at, _))| *at);
        next.is_some_and(|at| self.awaited.is_none_or(|awaited| awaited > at))
    }

    fn slot(&mut self, number: u64) -> Option<&mut CallSlot> {
        let place = number.checked_sub(self.first)?;
        self.window.get_mut(usize::try_from(place).ok()?)
    }

    fn call_of(&mut self, number: u64) -> Option<TraceCall> {
        self.slot(number)?.call.take()
    }

    /// Fills the window.
    fn read_ahead(&mut self) {
        while !self.is_read && self.window.len() < AHEAD {
            match self.feed.next_call() {
                Ok(Some(call)) => self.add(call),
                Ok(None) => self.is_read = true,
                Err(e) => {
                    self.failed = Some(e);
                    self.is_read = true;
                }
            }
        }
    }

    fn add(&mut self, call: TraceCall) {
        let number = self.first + self.window.len() as u64;
        let (mut waits_for, mut after) = (0, self.begun);
        for back in &call.after {
            let Some(before) = number.checked_sub(*back) else { continue };
            match self.slot(before) {
                Some(slot) => match slot.returned {
                    Some(returned) => after = after.max(returned),
                    None => {
                        slot.waited_for_by.push(number);
                        waits_for += 1;
                    }
                },
                None => after = after.max(self.past_of(before)),
            }
        }
        let slot = CallSlot {
            call: Some(call),
            waits_for,
            after,
            waited_for_by: Vec::new(),
            returned: None,
        };
        if waits_for == 0 {
            self.due.push(Reverse((self.due_at(&slot), number)));
        }
        self.window.push_back(slot);
    }

    /// When a call before the window returned; one too long ago has no say.
    fn past_of(&self, number: u64) -> Nanos {
        let back = usize::try_from(self.first - number).unwrap_or(usize::MAX);
        let place = self.past.len().checked_sub(back);
        place.and_then(|place| self.past.get(place)).copied().unwrap_or(self.begun)
    }

    fn due_at(&self, slot: &CallSlot) -> Nanos {
        let think = slot.call.as_ref().map_or(0, |call| call.think);
        match self.pace {
            ReplayPace::Recorded => slot.after + Duration::from_nanos(think),
            ReplayPace::FlatOut => slot.after,
        }
    }

    /// A call has returned: counts it, and sees what is due now.
    fn returned(
        &mut self,
        number: u64,
        call: &TraceCall,
        (began, ended): (Nanos, Nanos),
        made: CallOutcome,
    ) {
        self.count(number, call, ended.since(began), made);
        let at = ended.since(self.begun);
        self.done.elapsed = self.done.elapsed.max(at);
        self.done.progress.add(at);
        let waiting = self.slot(number).map(|slot| {
            slot.returned = Some(ended);
            std::mem::take(&mut slot.waited_for_by)
        });
        for other in waiting.unwrap_or_default() {
            let Some(slot) = self.slot(other) else { continue };
            slot.waits_for -= 1;
            slot.after = slot.after.max(ended);
            if slot.waits_for > 0 {
                continue;
            }
            // OK to index: it was there a moment ago.
            let at = self.due_at(&self.window[(other - self.first) as usize]);
            self.due.push(Reverse((at, other)));
        }
        while let Some(returned) = self.window.front().and_then(|slot| slot.returned) {
            self.window.pop_front();
            self.first += 1;
            self.past.push_back(returned);
            if self.past.len() > PAST {
                self.past.pop_front();
            }
        }
    }

    fn count(&mut self, number: u64, call: &TraceCall, took: Duration, made: CallOutcome) {
        let done = &mut self.done;
        let result = match made {
            CallOutcome::Returned(result) => result,
            CallOutcome::Missing(what) => {
                return done.differences.add(number, format!("{}: {what}", call.op));
            }
        };
        done.calls += 1;
        done.times.entry(call.op).or_default().add(took);
        match call.op {
            CallOp::Read => done.bytes.0 += u64::try_from(result).unwrap_or(0),
            CallOp::Write => done.bytes.1 += u64::try_from(result).unwrap_or(0),
            _ => {}
        }
        if differs(call, result) {
            let what =
                format!("{}: {} recorded, {} now", call.op, words(call.result), words(result));
            done.differences.add(number, what);
        }
    }
}

/// Whether a result is another one. How many names a request lists is the file system's affair.
fn differs(call: &TraceCall, result: i64) -> bool {
    match call.op {
        CallOp::List => (call.result < 0) != (result < 0),
        _ => call.result != result,
    }
}

fn words(result: i64) -> String {
    match i32::try_from(-result) {
        Ok(errno) if errno > 0 => std::io::Error::from_raw_os_error(errno).to_string(),
        _ if result == 0 => "success".to_owned(),
        _ => format!("{result} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::format::{
        NameForm, TraceEnd, TraceEntry, TraceHeader, TraceOrigin, TraceThread, VERSION,
    };
    use crate::order::CallOrder;
    use crate::writer::TraceWriter;

    fn header() -> TraceHeader {
        TraceHeader {
            format: crate::format::FORMAT.into(),
            version: VERSION,
            source: TraceOrigin::Synthetic,
            program: vec!["test".into()],
            trip: None,
            direct: false,
            names: NameForm::Kept,
            not_seen: Vec::new(),
        }
    }

    fn trace(calls: Vec<TraceCall>) -> Arc<dyn TraceSource> {
        edited(calls, |_| ())
    }

    fn edited(calls: Vec<TraceCall>, edit: impl Fn(&mut TraceCall)) -> Arc<dyn TraceSource> {
        let mut writer = TraceWriter::new(Vec::new(), &header()).unwrap();
        let mut order = CallOrder::new(None);
        let mut threads: BTreeMap<u32, ()> = BTreeMap::new();
        for mut call in calls {
            if threads.insert(call.thread, ()).is_none() {
                let thread = TraceThread {
                    thread: call.thread,
                    process: call.thread,
                    parent: None,
                    name: String::new(),
                    waited: Vec::new(),
                };
                order.thread(&thread);
                writer.add(&TraceEntry::Thread(thread)).unwrap();
            }
            order.call(&mut call);
            edit(&mut call);
            writer.add(&TraceEntry::Call(call)).unwrap();
        }
        let end = TraceEnd { calls: 0, at: 0, status: Some(0), interrupted: false };
        Arc::new(writer.end(end).unwrap())
    }

    #[test]
    fn it_thinks_as_long_as_it_did() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn FileSystem> = Arc::new(steadfast_vfs::HostFs::open(folder.path()).unwrap());
        let named = |op, start, name: &str| TraceCall {
            dir: Some(0),
            name: name.into(),
            ..TraceCall::new(op, 1, start, start + 10)
        };
        let create = TraceCall { file: Some(1), handle: Some(1), ..named(CallOp::Create, 0, "a") };
        let create = TraceCall { flags: vec![crate::format::CallFlag::Write], ..create };
        let write = |start, len| TraceCall {
            file: Some(1),
            handle: Some(1),
            len,
            result: len as i64,
            ..TraceCall::new(CallOp::Write, 1, start, start + 10)
        };
        let second = 30_000_000;
        let calls = vec![
            create,
            write(20, 100),
            write(second, 50),
            named(CallOp::Unlink, second + 20, "b"),
        ];
        let trace = trace(calls);
        let (found, end) =
            super::super::run(&trace, &fs, (ReplayPace::Recorded, Arc::new(())), || Ok(()))
                .unwrap();
        assert_eq!((found.calls, end.calls, found.bytes), (4, 4, (0, 150)));
        assert!(found.elapsed >= Duration::from_millis(29), "{:?}", found.elapsed);
        let kinds: Vec<&String> = found.differences.kinds.keys().collect();
        assert_eq!(kinds, ["unlink: success recorded, No such file or directory (os error 2) now"]);
        assert_eq!(std::fs::metadata(folder.path().join("a")).unwrap().len(), 100);
    }

    /// Without the edge the second thread is too early: the replay says so.
    #[test]
    fn a_lost_edge_is_a_difference() {
        let named = |op, thread, start, name: &str| TraceCall {
            dir: Some(0),
            name: name.into(),
            file: Some(1),
            ..TraceCall::new(op, thread, start, start + 10)
        };
        let make = |start| TraceCall {
            handle: Some(1),
            flags: vec![crate::format::CallFlag::Write],
            ..named(CallOp::Create, 1, start, "a")
        };
        let looked = named(CallOp::Lookup, 2, 40_000_100, "a");
        let differences = |keeps: bool| {
            let folder = tempfile::tempdir().unwrap();
            let fs: Arc<dyn FileSystem> =
                Arc::new(steadfast_vfs::HostFs::open(folder.path()).unwrap());
            let trace = edited(vec![make(40_000_000), looked.clone()], |call| {
                if !keeps && call.op == CallOp::Lookup {
                    call.after.clear();
                }
            });
            let how: (ReplayPace, Arc<dyn ReplayObserver>) = (ReplayPace::Recorded, Arc::new(()));
            super::super::run(&trace, &fs, how, || Ok(())).unwrap().0.differences.calls
        };
        assert_eq!((differences(true), differences(false)), (0, 1));
    }
}
