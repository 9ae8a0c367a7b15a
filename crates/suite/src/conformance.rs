//! The same POSIX cases on two file systems, and what differs.
//!
//! A case is a few steps in a language of its own (`cases/*.case`, read by [`script`]): each step
//! is one system call, and leaves a line of transcript: the step and its value or error. A case
//! knows no right answer. It is run on two targets and the transcripts are compared; the kernel's
//! ext4 says what is right. What may differ, and why, is in `known-differences.txt`.
//!
//! Cases run one after the other in one thread (and, as another user, in threads of its own), with
//! a `umask` that is not the process's.

mod acl;
mod compare;
mod ops;
mod run;
pub mod script;
mod transcript;
mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustix::thread::UnshareFlags;

pub use compare::{Comparison, Difference, KnownDifferences, compare};
pub use transcript::Transcript;

use crate::{Result, SuiteError, Target};
use script::Case;
use world::World;

/// All cases, in the order of their files.
pub fn cases() -> Result<Vec<Case>> {
    const FILES: [(&str, &str); 18] = [
        ("open", include_str!("../cases/open.case")),
        ("create", include_str!("../cases/create.case")),
        ("remove", include_str!("../cases/remove.case")),
        ("link", include_str!("../cases/link.case")),
        ("rename", include_str!("../cases/rename.case")),
        ("names", include_str!("../cases/names.case")),
        ("mode", include_str!("../cases/mode.case")),
        ("owner", include_str!("../cases/owner.case")),
        ("permission", include_str!("../cases/permission.case")),
        ("times", include_str!("../cases/times.case")),
        ("size", include_str!("../cases/size.case")),
        ("data", include_str!("../cases/data.case")),
        ("space", include_str!("../cases/space.case")),
        ("attributes", include_str!("../cases/attributes.case")),
        ("folders", include_str!("../cases/folders.case")),
        ("locks", include_str!("../cases/locks.case")),
        ("protected", include_str!("../cases/protected.case")),
        ("ioctl", include_str!("../cases/ioctl.case")),
    ];
    let mut all: Vec<Case> = Vec::new();
    for (file, text) in FILES {
        for case in script::parse(file, text)? {
            if all.iter().any(|c| c.name == case.name) {
                let what = "the name is taken".to_owned();
                return Err(SuiteError::Script { case: case.name, what });
            }
            all.push(case);
        }
    }
    Ok(all)
}

/// Longest that a case may take: the slowest need some seconds on a busy machine.
const CASE_LIMIT: Duration = Duration::from_secs(120);

/// Runs cases on a mounted target, as root; a transcript for each. `progress` is called before each
/// case with its name. If a case does not end, the daemon of the mount is killed, so that its calls
/// do, and the case is named in the error.
pub fn run_cases(
    target: &Target,
    cases: &[Case],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Transcript>> {
    if !rustix::process::geteuid().is_root() {
        return Err(SuiteError::Target(
            "the cases change users and devices: run them as root".into(),
        ));
    }
    let folder = target.mountpoint();
    let is_over = AtomicBool::new(false);
    let (begin, begun) = channel();
    let work = || {
        // Moved in, so that the channel ends with the work.
        let begin = begin;
        crate::raw::unshare(UnshareFlags::FS)
            .map_err(|e| SuiteError::Target(format!("unshare: {e}")))?;
        let mut transcripts = Vec::with_capacity(cases.len());
        for case in cases.iter().take_while(|_| !is_over.load(Ordering::Relaxed)) {
            // Nobody listens any more when a case has taken too long.
            let _ = begin.send(case.name.as_str());
            transcripts.push(run::run(World::new(&folder, &case.name)?, case)?);
        }
        Ok(transcripts)
    };
    std::thread::scope(|s| {
        let worker = s.spawn(work);
        let mut case = "";
        let mut late = None;
        loop {
            match begun.recv_timeout(CASE_LIMIT) {
                Ok(name) => {
                    case = name;
                    progress(name);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    is_over.store(true, Ordering::Relaxed);
                    late.get_or_insert(case);
                    target.kill_daemon();
                }
            }
        }
        match (late, worker.join()) {
            (_, Err(panic)) => std::panic::resume_unwind(panic),
            (None, Ok(done)) => done,
            (Some(case), Ok(_)) => Err(SuiteError::Target(format!(
                "case {case} did not end within {} s: the daemon was killed",
                CASE_LIMIT.as_secs()
            ))),
        }
    })
}
