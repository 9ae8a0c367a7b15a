//! Signals that ask a command to stop.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Ctrl-C, `kill`, and the end of the terminal; that not under nohup(1), where it is no reason to
/// stop.
pub fn numbers() -> Vec<i32> {
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hang_up).collect()
}

/// Whether this process inherited a signal as ignored (proc_pid_status(5)).
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}
