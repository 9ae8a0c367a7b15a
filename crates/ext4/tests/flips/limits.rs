//! Time and memory of a case. A case runs on one thread: simulated tasks are coroutines.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, Once};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// More than a case may hold at any moment. The image is 12 MiB, the page cache 4 MiB.
pub const MEMORY_BYTES_MAX: isize = 64 << 20;

/// A case takes milliseconds; this is a loop, on however busy a machine.
const TIME_MAX: Duration = Duration::from_secs(120);

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator; counts what each thread holds. What one thread takes and another gives
/// back does not occur within a case.
struct Counting;

fn count(bytes: isize) {
    // Not while a thread ends.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

#[expect(unsafe_code, reason = "a global allocator cannot be written without")]
// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract;
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static RUNNING: Mutex<BTreeMap<String, (Instant, ThreadId)>> = Mutex::new(BTreeMap::new());
static WATCHDOG: Once = Once::new();

/// Writes a line to standard error, also past the test's capture.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Ends the process if a case does not end.
fn watch() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let running = RUNNING.lock().unwrap();
        let late = running.iter().find(|(_, (since, _))| since.elapsed() > TIME_MAX);
        if let Some((what, (_, thread))) = late {
            say(&format!("{thread:?} does not end: {what}"));
            std::process::abort();
        }
    }
}

/// A case that is watched.
pub struct Case {
    what: String,
    held_before: isize,
}

impl Case {
    pub fn begin(what: &str) -> Case {
        WATCHDOG.call_once(|| drop(std::thread::spawn(|| watch())));
        let now = (Instant::now(), std::thread::current().id());
        RUNNING.lock().unwrap().insert(what.to_string(), now);
        let held_before = HELD.get();
        PEAK.set(held_before);
        Case { what: what.to_string(), held_before }
    }

    /// The most that the case has held at one moment, in bytes.
    pub fn end(self) -> isize {
        RUNNING.lock().unwrap().remove(&self.what);
        PEAK.get() - self.held_before
    }
}
