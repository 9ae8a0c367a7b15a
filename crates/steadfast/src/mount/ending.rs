//! The end of a process of ours, which lets its devices go.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};

use crate::terminal;

/// A process whose end can be waited for: this one, whoever gets its number afterwards.
pub struct Ending {
    number: u32,
    open: Open,
}

/// How a process is watched.
enum Open {
    Process(OwnedFd),
    /// By its number alone: the kernel has no such descriptors (before Linux 5.3), or forbids them.
    Number(Pid),
    Ended,
}

/// Between two looks at a process that is known by its number alone.
const LOOK: Duration = Duration::from_millis(20);

impl Ending {
    /// Of a process that is there.
    pub fn of(number: u32) -> Ending {
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        let open = match pid.map(|pid| (pid, pidfd_open(pid, PidfdFlags::empty()))) {
            Some((_, Ok(open))) => Open::Process(open),
            None | Some((_, Err(Errno::SRCH))) => Open::Ended,
            Some((pid, Err(_))) => Open::Number(pid),
        };
        Ending { number, open }
    }

    /// Waits until all of its threads have ended, at most `most`: the answer comes before, and its
    /// locks on the devices go with it. Says so if it has not; whether it has.
    pub fn wait(&self, most: Duration) -> bool {
        let begun = Instant::now();
        loop {
            let left = most.saturating_sub(begun.elapsed());
            if self.has_ended(left) {
                return true;
            }
            if most <= begun.elapsed() {
                break;
            }
        }
        terminal::note(&format!(
            "note: process {} has not ended yet: until then its devices are in use",
            self.number
        ));
        false
    }

    /// Whether it has ended, waiting for that; a signal, or the time, ends the wait before.
    fn has_ended(&self, left: Duration) -> bool {
        match &self.open {
            Open::Ended => true,
            Open::Process(open) => {
                // OK to ignore: nobody waits so long that it is no number.
                let left = left.try_into().ok();
                !matches!(
                    poll(&mut [PollFd::new(open, PollFlags::IN)], left.as_ref()),
                    Ok(0) | Err(Errno::INTR)
                )
            }
            Open::Number(pid) => {
                let gone = test_kill_process(*pid) == Err(Errno::SRCH);
                if !gone {
                    std::thread::sleep(LOOK.min(left));
                }
                gone
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_ended_once_all_of_it_has() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let (ending, gone) = (Ending::of(child.id()), Ending::of(0));
        assert!(!ending.wait(Duration::ZERO) && gone.wait(Duration::MAX));
        child.kill().unwrap();
        // Before anybody has asked for its status, and when its number is free.
        assert!(ending.wait(Duration::MAX));
        let pid = Pid::from_child(&child);
        let by_number = Ending { number: child.id(), open: Open::Number(pid) };
        assert!(!by_number.wait(Duration::ZERO), "its status is still there");
        child.wait().unwrap();
        assert!(ending.wait(Duration::ZERO) && by_number.wait(Duration::ZERO));
    }
}
