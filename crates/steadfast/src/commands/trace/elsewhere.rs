//! Files outside of the recorded folder that a program had open for writing: what it did there is
//! not in the trace.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::commands::whole_file;

/// How often it is looked.
const EVERY: Duration = Duration::from_millis(100);
/// What is always outside and no file of the program's.
const NO_FILES: [&str; 3] = ["/dev/", "/proc/", "/sys/"];

/// Looks again and again, until it is asked.
pub struct OutsideFiles {
    stop: Arc<AtomicBool>,
    looking: Option<JoinHandle<BTreeSet<PathBuf>>>,
}

impl OutsideFiles {
    /// Of a process and what it has started.
    pub fn look(process: u32, folder: &Path) -> OutsideFiles {
        let (stop, folder) = (Arc::new(AtomicBool::new(false)), folder.to_owned());
        let stopped = Arc::clone(&stop);
        let look = move || {
            let mut seen = BTreeSet::new();
            while !stopped.load(Ordering::Relaxed) {
                look_at(process, &folder, &mut seen);
                std::thread::park_timeout(EVERY);
            }
            seen
        };
        // Without a thread nothing is said of it.
        let looking = std::thread::Builder::new().name("elsewhere".into()).spawn(look).ok();
        OutsideFiles { stop, looking }
    }

    /// What was seen.
    pub fn end(mut self) -> Vec<PathBuf> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.looking.take() else { return Vec::new() };
        thread.thread().unpark();
        thread.join().unwrap_or_default().into_iter().collect()
    }
}

/// Processes may be gone at any moment: what cannot be read is left out.
fn look_at(process: u32, folder: &Path, seen: &mut BTreeSet<PathBuf>) {
    let own = PathBuf::from(format!("/proc/{process}"));
    for open in fs::read_dir(own.join("fd")).into_iter().flatten().flatten() {
        let Ok(path) = fs::read_link(open.path()) else { continue };
        let is_file = path.is_absolute() && !NO_FILES.iter().any(|not| path.starts_with(not));
        let about = fs::metadata(open.path()).ok().filter(std::fs::Metadata::is_file);
        // What we have open, too, the program was given: its output.
        let is_given = |about: &fs::Metadata| whole_file::is_ours(about, &[]);
        if !is_file || path.starts_with(folder) || about.as_ref().is_none_or(is_given) {
            continue;
        }
        let about = own.join("fdinfo").join(open.file_name());
        let flags = fs::read_to_string(about).unwrap_or_default();
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|text| i32::from_str_radix(text.trim(), 8).ok());
        if flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY) {
            seen.insert(path);
        }
    }
    for task in fs::read_dir(own.join("task")).into_iter().flatten().flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|number| number.parse().ok());
        children.for_each(|child| look_at(child, folder, seen));
    }
}
