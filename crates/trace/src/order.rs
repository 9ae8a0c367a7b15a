//! Which calls a call waited for, as far as a trace shows: the rules of ROOT (Weiss, Harter,
//! Arpaci-Dusseau and Arpaci-Dusseau, "ROOT: Replaying Multithreaded Traces with Resource-Oriented
//! Ordering", SOSP 2013).
//!
//! * *A thread's* calls follow one another.
//! * *A file's* calls follow one another, unless both only read. A sync and a listing follow what
//!   was changed before them, and nothing waits for them but their thread.
//! * *A name's* calls follow one another, unless both only look at it: made, used, removed, made
//!   again.
//! * *A handle* is opened, used, closed.
//! * *A process* begins after what the process that has started it had done, and after all that had
//!   ended when it was first seen; and a process that made no call while one that it had started
//!   made some has waited for it.
//! * *A thread* begins after what its process had done; and one that made no call while another one
//!   of its process ended has waited for that.
//! * *A thread that slept* between two of its calls was woken: by a pipe, a socket, a lock, which
//!   are not seen. It follows the call of another thread that ended last while it slept: what wakes
//!   it comes from who went on then.
//!
//! A call that had not ended when another began is no reason for that one to wait. So the time from
//! the end of the last of these calls to the beginning is what the program did itself: its think
//! time, without the trip through the mount. Where that call was the thread's own and the system
//! says how long the thread has run, it is taken from there: a trip's length differs more from call
//! to call than most programs think.

use std::collections::{HashMap, VecDeque};

use crate::format::{CallFlag, CallOp, TraceCall, TraceThread, Trip};
use crate::reader::AFTER_MAX;

/// A call that has been: its number in the trace, from 0, its thread, when it began and ended.
#[derive(Debug, Clone, Copy)]
struct PastCall {
    call: u64,
    thread: u32,
    start: u64,
    end: u64,
}

/// A sleep shorter than so many trips is no sleep of the program: the way through the mount may
/// have taken longer, and another one may have had the processor.
const SLEEP_TRIPS: u64 = 4;
/// So many calls before one are looked through for the one that woke its thread.
const WAKERS: usize = 256;

/// What a thread had run when it made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ThreadRun {
    /// On a processor, in ns.
    pub ran_ns: u64,
    /// Ready to run, and another one did, in ns.
    pub queued_ns: u64,
    /// How often it was put on a processor.
    pub times: u64,
}

/// What there is to know of a call beside what a trace says.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallAside {
    /// Requests of the thread since its last call that were no calls, and the time of them, in ns:
    /// each has cost a trip, too, and none of it is think time.
    pub requests: u64,
    /// See `requests`.
    pub ns: u64,
    /// What its thread had run.
    pub run: Option<ThreadRun>,
    /// Threads of its process that have ended while it made no call: it has waited for them.
    pub ended: Vec<u32>,
}

/// What is known of something that calls use: a file, a name, a handle.
#[derive(Debug, Default)]
struct OrderResource {
    /// The calls that changed it last.
    changes: Vec<PastCall>,
    /// Those since that only read, the last one of each thread.
    reads: HashMap<u32, PastCall>,
    /// Reads that had ended by then are forgotten.
    forgotten: u64,
}

impl OrderResource {
    /// Forgets the calls that a change has waited for that had ended at this time: who waits for
    /// that one has waited for them. One that is still under way nobody can wait for.
    fn forget(&mut self, time: u64) {
        // One that ended before an ended change began is past. A change is not before itself.
        let ended = self.changes.iter().filter(|change| change.end <= time);
        let Some(last) = ended.max_by_key(|change| change.start).copied() else { return };
        self.changes.retain(|old| old.call == last.call || last.start < old.end);
        if last.start > self.forgotten {
            self.forgotten = last.start;
            self.reads.retain(|_, old| last.start < old.end);
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash, Clone)]
enum ResourceKey {
    File(u64),
    Name(u64, String),
    Handle(u64),
    /// All of it, for what makes everything durable.
    All,
}

#[derive(Debug, Default)]
struct ProcessOrder {
    parent: Option<u32>,
    /// Its last call, of any thread.
    last: Option<PastCall>,
    has_begun: bool,
    /// Of processes that it has started the last call, as far as it has not waited for it.
    children: HashMap<u32, PastCall>,
    /// Processes that had ended when it was first seen.
    waited: Vec<u32>,
}

/// Finds what calls wait for, in the order of their starts.
#[derive(Debug, Default)]
pub struct CallOrder {
    calls: u64,
    trip: Trip,
    /// Of each thread its process and its calls: the last one, and those before it that it did not
    /// wait for.
    threads: HashMap<u32, (u32, OrderResource)>,
    /// What each thread had run at its last call, and what of the trips before that was not taken
    /// off yet, in ns: a call's trip is partly after its answer.
    runs: HashMap<u32, (ThreadRun, u64)>,
    processes: HashMap<u32, ProcessOrder>,
    resources: HashMap<ResourceKey, OrderResource>,
    /// The last calls of all threads.
    recent: VecDeque<PastCall>,
}

/// What a thread did between its last call and the next one, in ns.
#[derive(Debug, Clone, Copy)]
struct ThreadWork {
    /// It has run, without what the trips ran.
    ran: u64,
    /// It slept for something else than an answer.
    slept: u64,
}

impl CallOrder {
    /// `trip`: what the way through the mount costs, which is no think time, if there is one.
    pub fn new(trip: Option<Trip>) -> CallOrder {
        CallOrder { trip: trip.unwrap_or_default(), ..CallOrder::default() }
    }

    /// A thread, before its first call.
    pub fn thread(&mut self, thread: &TraceThread) {
        self.threads.insert(thread.thread, (thread.process, OrderResource::default()));
        let process = self.processes.entry(thread.process).or_default();
        process.waited.extend(&thread.waited);
        if process.parent.is_none() && thread.parent.is_some_and(|p| p != thread.process) {
            process.parent = thread.parent;
        }
    }

    /// Says what the next call waits for, in the call itself.
    pub fn call(&mut self, call: &mut TraceCall) {
        self.call_beside(call, CallAside::default());
    }

    /// The same, knowing more.
    pub(crate) fn call_beside(&mut self, call: &mut TraceCall, aside: CallAside) {
        let TraceCall { thread, start, end, .. } = *call;
        let own = PastCall { call: self.calls, thread, start, end };
        let mut before: Vec<PastCall> = Vec::new();
        let (process, past) =
            self.threads.entry(thread).or_insert_with(|| (thread, OrderResource::default()));
        past.forget(start);
        before.extend(&past.changes);
        past.changes.push(own);
        let (process, is_new) = (*process, before.is_empty());
        let own_end = before.iter().map(|past| past.end).filter(|end| *end <= start).max();
        before.extend(aside.ended.iter().filter_map(|ended| {
            self.threads.get(ended).and_then(|(_, past)| past.changes.last().copied())
        }));
        self.of_process(process, (start, is_new), &mut before);
        let since_own = start - own_end.unwrap_or(0);
        let work = self.work(call, since_own, &aside);
        // Who closes a file by ending is not asked any more what it has run.
        let has_slept = match work {
            Some(work) => work.slept > 0,
            None if self.trip.median_ns == 0 => false,
            None => call.op == CallOp::Close && since_own > self.longest_trip(),
        };
        if has_slept {
            before.extend(self.waker(&own, own_end));
        }
        self.recent.push_back(own);
        if self.recent.len() > WAKERS {
            self.recent.pop_front();
        }
        for (key, usage) in uses(call) {
            let resource = self.resources.entry(key).or_default();
            resource.forget(start);
            before.extend(resource.changes.iter().copied());
            if usage == ResourceUse::Reads {
                resource.reads.insert(thread, own);
                continue;
            }
            before.extend(resource.reads.values().copied());
            if usage == ResourceUse::Changes {
                resource.changes.push(own);
            }
        }
        before.retain(|past| past.end <= call.start);
        // Not those that a later one of the same thread has waited for.
        before.sort_unstable_by_key(|past| std::cmp::Reverse(past.call));
        before.dedup_by_key(|past| past.call);
        // Of each thread when the last one of those that are kept began.
        let mut kept: HashMap<u32, u64> = HashMap::new();
        before.retain(|past| {
            let last = kept.get(&past.thread).copied();
            let keeps = last.is_none_or(|start| start < past.end);
            if keeps {
                kept.insert(past.thread, last.unwrap_or(0).max(past.start));
            }
            keeps
        });
        if before.len() > AFTER_MAX {
            // Those that ended last say when it begins.
            before.sort_unstable_by_key(|past| std::cmp::Reverse((past.end, past.call)));
            before.truncate(AFTER_MAX);
            before.sort_unstable_by_key(|past| std::cmp::Reverse(past.call));
        }
        let ended = before.iter().map(|past| past.end).max().unwrap_or(0);
        call.after = before.iter().map(|past| self.calls - past.call).collect();
        call.think = self.think((start - ended, since_own), work, &aside);
        let known = self.processes.entry(process).or_default();
        known.has_begun = true;
        if known.last.is_none_or(|past| past.end <= own.end) {
            known.last = Some(own);
            if let Some(parent) = known.parent {
                self.processes.entry(parent).or_default().children.insert(process, own);
            }
        }
        if matches!(call.op, CallOp::Close)
            && let Some(handle) = call.handle
        {
            self.resources.remove(&ResourceKey::Handle(handle));
        }
        self.calls += 1;
    }

    /// What of the time since the last call that it waited for was the program's. `since_own`: the
    /// time since the last one of the thread itself.
    fn think(
        &self,
        (time, since_own): (u64, u64),
        work: Option<ThreadWork>,
        aside: &CallAside,
    ) -> u64 {
        let trips = self.trip.median_ns.saturating_mul(1 + aside.requests);
        let by_trips = time.saturating_sub(trips.saturating_add(aside.ns));
        let Some(ThreadWork { ran, slept }) = work else { return by_trips };
        let own = ran.saturating_add(slept).min(since_own);
        // After another thread's call it cannot have done more than since its own.
        if since_own <= time { own } else { own.min(by_trips) }
    }

    /// What a call's thread did since its last call; `None`: the system did not say.
    fn work(&mut self, call: &TraceCall, since_own: u64, aside: &CallAside) -> Option<ThreadWork> {
        let requests = 1 + aside.requests;
        let before = self.runs.remove(&call.thread);
        let after = aside.run?;
        let Some((before, owed)) = before else {
            self.runs.insert(call.thread, (after, 0));
            return None;
        };
        let Trip { median_ns, run_ns, run_ns_of, .. } = &self.trip;
        let since = |of: fn(&ThreadRun) -> u64| of(&after).saturating_sub(of(&before));
        let ran = since(|run| run.ran_ns);
        // It sleeps once a request, until it is answered. What else it slept for is its own, too:
        // a lock, a pipe, a clock. What it was ready to run for is not.
        let times = since(|run| run.times);
        let slept = since_own
            .saturating_sub(ran)
            .saturating_sub(since(|run| run.queued_ns))
            .saturating_sub(median_ns.saturating_sub(*run_ns).saturating_mul(requests))
            .saturating_sub(aside.ns);
        let is_sleep = times > requests && slept > self.longest_trip();
        let slept = if is_sleep { slept } else { 0 };
        // Else it was a request that was not seen here.
        let others = if is_sleep { aside.requests } else { times.max(requests) - 1 };
        let own = run_ns_of.get(&call.op).unwrap_or(run_ns);
        let costs = own.saturating_add(run_ns.saturating_mul(others));
        let owed = owed.saturating_add(costs);
        self.runs.insert(call.thread, (after, owed.saturating_sub(ran).min(costs)));
        Some(ThreadWork { ran: ran.saturating_sub(owed), slept })
    }

    /// What is longer is a sleep, or work.
    fn longest_trip(&self) -> u64 {
        self.trip.median_ns.saturating_mul(SLEEP_TRIPS)
    }

    /// The call of another thread that ended last before this one began, since the thread's own.
    fn waker(&self, own: &PastCall, own_end: Option<u64>) -> Option<PastCall> {
        let slept = own_end.unwrap_or(0)..=own.start;
        let others = self.recent.iter().filter(|past| past.thread != own.thread);
        others.filter(|past| slept.contains(&past.end)).max_by_key(|past| past.end).copied()
    }

    fn of_process(
        &mut self,
        process: u32,
        (start, is_new): (u64, bool),
        before: &mut Vec<PastCall>,
    ) {
        let Some(known) = self.processes.get(&process) else { return };
        let last_of = |other: &u32| self.processes.get(other)?.last;
        if is_new {
            before.extend(known.last);
        }
        if !known.has_begun {
            before.extend(known.parent.as_ref().and_then(last_of));
            before.extend(known.waited.iter().filter_map(last_of));
        }
        let own_end = known.last.map_or(0, |past| past.end);
        let Some(known) = self.processes.get_mut(&process).filter(|k| !k.children.is_empty())
        else {
            return;
        };
        let has_ended = |past: &PastCall| past.end >= own_end && past.end <= start;
        before.extend(known.children.values().filter(|past| has_ended(past)));
        // What had ended before this call is waited for, by this one.
        known.children.retain(|_, past| past.end >= start);
    }
}

/// What a call does with what it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResourceUse {
    /// It waits for changes, and changes wait for it.
    Reads,
    /// It waits for all others, and they wait for it.
    Changes,
    /// It waits for all others, and none waits for it: a sync, a listing.
    Gathers,
}

/// What a call uses, and how.
fn uses(call: &TraceCall) -> Vec<(ResourceKey, ResourceUse)> {
    use ResourceUse::{Changes, Gathers, Reads};
    let on_file = match call.op {
        CallOp::List => Gathers,
        op if op.is_sync() => Gathers,
        op if op.only_reads() && !call.has(CallFlag::Truncate) => Reads,
        _ => Changes,
    };
    let mut all = Vec::with_capacity(6);
    if let Some(handle) = call.handle {
        let opens =
            matches!(call.op, CallOp::Open | CallOp::Create | CallOp::Tmpfile | CallOp::Close);
        all.push((ResourceKey::Handle(handle), if opens { Changes } else { Reads }));
    }
    all.extend(call.file.map(|file| (ResourceKey::File(file), on_file)));
    let looks = matches!(call.op, CallOp::Lookup | CallOp::Open);
    for (dir, name, looks) in [(call.dir, &call.name, looks), (call.to_dir, &call.to, false)] {
        if let Some(dir) = dir {
            let on_name = if looks { Reads } else { Changes };
            // What makes or removes names in a folder leaves it the same folder; who lists or syncs
            // it wants them all.
            all.extend([
                (ResourceKey::Name(dir, name.clone()), on_name),
                (ResourceKey::File(dir), Reads),
            ]);
        }
    }
    all.push((ResourceKey::All, if call.op == CallOp::Sync { Gathers } else { Reads }));
    all
}

#[cfg(test)]
mod tests;
