//! File descriptors of the process that serves a mount: seen to before there is a mount that could
//! not be served.

use anyhow::Result;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is opened besides that of the threads: images, the log, the control socket and those who
/// ask something there, the host's tables that are read.
const OTHERS: u64 = 32;

/// Makes room for this many threads, as far as the hard limit allows. Without room for theirs the
/// threads share one connection to the kernel.
///
/// # Errors
/// There is no room for anything else either.
pub fn make_room(threads: usize) -> Result<()> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
    let least = open + OTHERS;
    let wanted = least + threads as u64;
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < wanted) else { return Ok(()) };
    let raised = limit.maximum.map_or(wanted, |most| wanted.min(most));
    if raised > current {
        // OK to ignore: then it is as low as before.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit });
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    anyhow::ensure!(
        current >= least,
        "too few file descriptors: {current} are allowed, a mount needs {least} (ulimit -n)"
    );
    Ok(())
}
