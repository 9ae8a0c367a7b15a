//! Inodes that a front end knows by their numbers. The kernel of a mount uses a node until it has
//! forgotten it, with a name or without one: it opens what it has found before a rename replaced
//! it.
//!
//! # Invariants
//!
//! 1. An inode that is held is not deleted, and its number does not become another's. Without a
//!    name it is an orphan, so a crash deletes it.
//! 2. Holds are counted by number and not in the inode in memory: a kernel may know millions, few
//!    of which are in memory, and they outlive a rollback.
//! 3. What is let go of and has no name is *due*. One task deletes it, so that nobody who lets go
//!    waits for the journal. Who finds no space waits for that task ([`Holds::settle`]), and who
//!    removes names while too much is due ([`Holds::relieve`]).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{self, Arc, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_runtime::{Condvar, JoinHandle, Mutex, MutexGuard, Nanos, now, spawn};

/// Parts of the table, each with a lock of its own: every lookup of a mount takes one.
const PARTS: usize = 16;

/// How long after its last name has gone an inode is likely to be let go of: the kernel does so at
/// once, unless somebody uses the inode.
const SOON: Duration = Duration::from_millis(100);

/// How long nobody waits in vain for the next deletion.
const PATIENCE: Duration = Duration::from_secs(1);

/// What may be due before those who remove names wait.
const DUE_MAX: usize = 4096;

#[derive(Default)]
struct Hold {
    count: u64,
    /// It has no name and nobody has it open: only the holds keep it.
    waits: bool,
}

type Part = FxHashMap<InodeNo, Hold>;

/// Who is held, and what is due.
#[derive(Default)]
pub(crate) struct Holds {
    /// Taken below `Inode::state`, and nothing else while one is held.
    parts: [sync::Mutex<Part>; PARTS],
    shared: Arc<HoldQueue>,
    has_task: AtomicBool,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct HoldQueue {
    /// Inodes that only holds keep, or that are due.
    waiting: AtomicU64,
    /// When the last of them came.
    came: AtomicU64,
    /// So many of them have been waited for in vain.
    given_up: AtomicU64,
    /// So many inodes have been deleted.
    done: AtomicU64,
    due: Mutex<Due>,
    changed: Condvar,
}

/// What is due.
#[derive(Default)]
struct Due {
    queue: VecDeque<InodeNo>,
    /// What could not be deleted yet.
    postponed: Vec<InodeNo>,
    /// One is being deleted.
    busy: bool,
    /// So many deletions have been tried.
    tried: u64,
    stop: bool,
}

impl Holds {
    fn part(&self, no: InodeNo) -> sync::MutexGuard<'_, Part> {
        lock(&self.parts[no.0 as usize % PARTS])
    }

    /// Holds an inode once more. The caller has its state, and has seen that it is not doomed.
    pub fn hold(&self, no: InodeNo) {
        self.part(no).entry(no).or_default().count += 1;
    }

    /// Whether the number is held.
    pub fn contains(&self, no: InodeNo) -> bool {
        self.part(no).contains_key(&no)
    }

    /// Whether holds keep an inode that has no name and that nobody has open. Then it is due once
    /// they are gone. The caller has its state.
    pub fn keep(&self, no: InodeNo) -> bool {
        let mut part = self.part(no);
        let Some(hold) = part.get_mut(&no) else { return false };
        if !std::mem::replace(&mut hold.waits, true) {
            self.shared.came.store(now().0, Ordering::Relaxed);
            self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        }
        true
    }

    /// Gives back so many holds. Whether it was the last.
    pub fn let_go(&self, no: InodeNo, holds: u64) -> bool {
        let mut part = self.part(no);
        let Some(hold) = part.get_mut(&no) else { return true };
        hold.count = hold.count.saturating_sub(holds);
        if hold.count > 0 {
            return false;
        }
        let waits = hold.waits;
        part.remove(&no);
        drop(part);
        if waits {
            self.shared.add([no]);
        }
        true
    }

    /// Gives back all holds.
    pub fn let_go_all(&self) {
        for part in &self.parts {
            let gone = std::mem::take(&mut *lock(part));
            self.shared.add(gone.into_iter().filter(|(_, hold)| hold.waits).map(|(no, _)| no));
        }
    }

    /// Whether something is due that no task deletes yet.
    pub fn needs_task(&self) -> bool {
        !self.has_task.load(Ordering::Acquire) && self.shared.waiting.load(Ordering::SeqCst) > 0
    }

    /// Starts the task, once. `delete` says whether that is done, or has to be tried again later;
    /// `None` ends the task.
    pub fn start(&self, delete: impl Fn(InodeNo) -> Option<bool> + Send + 'static) {
        let mut task = self.task.lock();
        if task.is_some() || self.shared.due.lock().stop {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let run = move || {
            // However it ends: nobody waits for it any more.
            let _ended = TaskEndGuard(&shared);
            while let Some(no) = shared.next() {
                let Some(done) = delete(no) else { return };
                shared.end(no, done);
            }
        };
        *task = Some(spawn("deletions", run));
        self.has_task.store(true, Ordering::Release);
    }

    /// How many inodes have been deleted, for [`settle`](Self::settle).
    pub fn deleted(&self) -> u64 {
        self.shared.done.load(Ordering::SeqCst)
    }

    /// Waits until what is due has been deleted, and for what is likely to become due soon. Whether
    /// anything was deleted since there were so many deleted inodes: who has found no space after
    /// that may find some now. Not to be called where a deletion may have to wait for the caller.
    pub fn settle(&self, since: u64) -> bool {
        self.wait(SOON);
        self.deleted() > since
    }

    /// As [`settle`](Self::settle), only for what is due.
    pub fn settle_due(&self) {
        self.wait(Duration::ZERO);
    }

    fn wait(&self, soon: Duration) {
        let shared = &*self.shared;
        if shared.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut due = shared.due.lock();
        due.retry();
        shared.changed.notify_all();
        let began = now();
        let (mut done, mut at) = (self.deleted(), began);
        // The queue is worked off in its order: what others add later is not waited for.
        let mut last = due.last();
        loop {
            if due.stop {
                return;
            }
            if now().since(began) < soon {
                last = due.last();
            }
            let left = match due.is_idle() || due.tried >= last {
                false => PATIENCE.saturating_sub(now().since(at)),
                true if shared.held(&due) > shared.given_up.load(Ordering::Relaxed) => {
                    // Nor longer than that for what others remove meanwhile.
                    let came = Nanos(shared.came.load(Ordering::Relaxed)).min(began);
                    soon.saturating_sub(now().since(came))
                }
                true => Duration::ZERO,
            };
            if left.is_zero() {
                if !soon.is_zero() {
                    shared.given_up.store(shared.held(&due), Ordering::Relaxed);
                }
                return;
            }
            due = shared.changed.wait_timeout(due, left).0;
            if self.deleted() != done {
                (done, at) = (self.deleted(), now());
            }
        }
    }

    /// Waits as long as too much is due, and deletions go on.
    pub fn relieve(&self) {
        let shared = &*self.shared;
        if shared.waiting.load(Ordering::Relaxed) < DUE_MAX as u64 {
            return;
        }
        let mut due = shared.due.lock();
        while due.queue.len() >= DUE_MAX && !due.stop {
            let (waited, is_late) = shared.changed.wait_timeout(due, PATIENCE);
            due = waited;
            if is_late {
                return;
            }
        }
    }

    /// What could not be deleted is tried again.
    pub fn retry(&self) {
        if self.shared.waiting.load(Ordering::SeqCst) > 0 {
            self.shared.due.lock().retry();
            self.shared.changed.notify_all();
        }
    }

    /// Ends the task, and everything that is held: what is to be deleted now.
    pub fn end(&self) -> Vec<InodeNo> {
        self.shared.stop();
        let task = self.task.lock().take();
        if let Some(task) = task
            && let Err(panicked) = task.join()
        {
            panicked.resume();
        }
        self.let_go_all();
        let mut due = self.shared.due.lock();
        due.retry();
        due.queue.drain(..).collect()
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl HoldQueue {
    fn add(&self, numbers: impl IntoIterator<Item = InodeNo>) {
        self.due.lock().queue.extend(numbers);
        self.changed.notify_all();
    }

    /// The next to be deleted; `None` when the task must end.
    fn next(&self) -> Option<InodeNo> {
        let is_idle = |due: &mut Due| due.queue.is_empty() && !due.stop;
        let mut due: MutexGuard<'_, Due> = self.changed.wait_while(self.due.lock(), is_idle);
        if due.stop {
            return None;
        }
        let next = due.queue.pop_front();
        due.busy = true;
        next
    }

    fn end(&self, no: InodeNo, done: bool) {
        let mut due = self.due.lock();
        due.busy = false;
        due.tried += 1;
        if done {
            self.done.fetch_add(1, Ordering::SeqCst);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.given_up.fetch_min(self.held(&due), Ordering::Relaxed);
        } else {
            due.postponed.push(no);
        }
        drop(due);
        self.changed.notify_all();
    }

    /// Those that only holds keep.
    fn held(&self, due: &Due) -> u64 {
        let due = due.queue.len() + due.postponed.len() + usize::from(due.busy);
        self.waiting.load(Ordering::SeqCst).saturating_sub(due as u64)
    }

    fn stop(&self) {
        self.due.lock().stop = true;
        self.changed.notify_all();
    }
}

/// The task has ended, perhaps by a panic.
struct TaskEndGuard<'a>(&'a HoldQueue);

impl Drop for TaskEndGuard<'_> {
    fn drop(&mut self) {
        self.0.due.lock().busy = false;
        self.0.stop();
    }
}

impl Due {
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.busy
    }

    /// So many will have been tried when all that is due now has been.
    fn last(&self) -> u64 {
        self.tried + self.queue.len() as u64 + u64::from(self.busy)
    }

    fn retry(&mut self) {
        self.queue.extend(self.postponed.drain(..));
    }
}

fn lock(part: &sync::Mutex<Part>) -> sync::MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: InodeNo = InodeNo(12);

    #[test]
    fn only_the_last_hold_lets_go_and_only_what_waits_is_due() {
        let holds = Holds::default();
        assert!(!holds.keep(NO) && holds.let_go(NO, 1));
        holds.hold(NO);
        holds.hold(NO);
        assert!(!holds.let_go(NO, 1) && holds.contains(NO));
        // More than there are.
        assert!(holds.let_go(NO, u64::MAX) && !holds.contains(NO) && !holds.needs_task());
        holds.hold(NO);
        assert!(holds.keep(NO) && holds.keep(NO));
        assert!(holds.let_go(NO, 1) && holds.needs_task());
        assert_eq!(holds.end(), [NO]);
    }

    #[test]
    fn settling_waits_for_what_is_due_and_gives_up_on_what_is_held() {
        let holds = Holds::default();
        assert!(!holds.settle(0), "nothing is held");
        holds.start(|no| Some(no == NO));
        for no in [NO, InodeNo(13), InodeNo(14)] {
            holds.hold(no);
            assert!(holds.keep(no));
        }
        holds.let_go(NO, 1);
        assert!(holds.settle(0) && holds.deleted() == 1);
        // 13 cannot be deleted, 14 is not let go of.
        holds.let_go(InodeNo(13), 1);
        assert!(!holds.settle(1));
        assert_eq!(holds.end(), [InodeNo(14), InodeNo(13)]);
    }

    #[test]
    fn nobody_waits_for_what_others_remove_later() {
        let holds = Arc::new(Holds::default());
        let others = Arc::downgrade(&holds);
        let remove = |holds: &Holds, no| {
            holds.hold(no);
            holds.keep(no);
            holds.let_go(no, 1);
        };
        // Whenever one is deleted, the next is removed: the queue is never empty.
        holds.start(move |no| {
            remove(&*others.upgrade()?, InodeNo(no.0 + 1));
            Some(true)
        });
        remove(&holds, NO);
        holds.settle_due();
        assert!(holds.settle(0));
        assert_eq!(holds.end().len(), 1);
    }

    #[test]
    fn nobody_waits_for_a_task_that_has_panicked() {
        let holds = Holds::default();
        holds.start(|_| panic!("as a fault in the code"));
        holds.hold(NO);
        holds.keep(NO);
        let began = now();
        holds.let_go(NO, 1);
        holds.settle_due();
        assert!(holds.shared.due.lock().stop && now().since(began) < PATIENCE);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| holds.end()));
        assert!(ended.is_err(), "whoever unmounts is told");
    }

    #[test]
    fn who_removes_names_waits_while_too_much_is_due() {
        let holds = Holds::default();
        for no in 0..2 * DUE_MAX as u32 {
            holds.hold(InodeNo(no));
            holds.keep(InodeNo(no));
        }
        holds.let_go_all();
        holds.start(|_| Some(true));
        holds.relieve();
        assert!(holds.shared.due.lock().queue.len() < DUE_MAX);
        holds.settle(0);
        assert_eq!(holds.shared.waiting.load(Ordering::SeqCst), 0);
    }
}
