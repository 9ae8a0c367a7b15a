//! The end of a process of ours, which lets its devices go.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::terminal;

/// A process whose end can be waited for: this one, whoever gets its number afterwards.
pub struct Ending {
    number: u32,
    /// `None`: it has ended, or the kernel shows it to nobody.
    open: Option<OwnedFd>,
}

impl Ending {
    /// Of a process that is there.
    pub fn of(number: u32) -> Ending {
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        let open = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ending { number, open }
    }

    /// Waits until all of its threads have ended, at most `most`: the answer comes before, and its
    /// locks on the devices go with it. Says so if it has not; whether it has.
    pub fn wait(&self, most: Duration) -> bool {
        let Some(open) = &self.open else { return true };
        let begun = Instant::now();
        loop {
            let left = most.saturating_sub(begun.elapsed());
            // OK to ignore: nobody waits so long that it is no number.
            let left = left.try_into().ok();
            match poll(&mut [PollFd::new(open, PollFlags::IN)], left.as_ref()) {
                Ok(0) => break,
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) | Err(_) => return true,
            }
        }
        terminal::note(&format!(
            "note: process {} has not ended yet: until then its devices are in use",
            self.number
        ));
        false
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
        child.wait().unwrap();
        assert!(ending.wait(Duration::ZERO));
    }
}
