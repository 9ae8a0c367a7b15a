//! Commands under limits of time and memory.

use std::process::{Command, Output};

use super::outside::Bench;

/// More of the processor's time is a hang.
pub const CPU_SECONDS_MAX: u32 = 20;
/// Longer waiting is one too. It is not the same: the machine may be busy.
const WALL_SECONDS_MAX: u32 = 120;
/// Memory at its peak.
pub const PEAK_KIB_MAX: u64 = 512 << 10;

/// Whether the tests can run here.
pub fn is_possible() -> bool {
    rustix::process::geteuid().is_root()
        && std::fs::File::open("/dev/fuse").is_ok()
        && std::path::Path::new("/usr/bin/time").exists()
}

/// Runs a line in the test's folder; it is killed after its time.
pub fn other(bench: &Bench, line: &str) -> Output {
    let limit = WALL_SECONDS_MAX.to_string();
    Command::new("timeout")
        .args(["-s", "KILL", &limit, "sh", "-c", line])
        .env("STEADFAST_RUNTIME_DIR", bench.path("run"))
        .current_dir(bench.at())
        .output()
        .unwrap()
}

/// Runs the program; its exit status, and what is wrong with how it ended.
pub fn steadfast(bench: &Bench, line: &str) -> (Option<i32>, Option<String>) {
    let program = env!("CARGO_BIN_EXE_steadfast");
    let limited = format!(
        "exec /usr/bin/time -q -f %M -o peak prlimit --core=0 --cpu={CPU_SECONDS_MAX} {program} \
         {line} > stdout 2> stderr"
    );
    let out = other(bench, &limited);
    let status = out.status.code();
    let said = std::fs::read(bench.path("stderr")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let peak = std::fs::read_to_string(bench.path("peak")).unwrap_or_default();
    let peak: Option<u64> = peak.lines().last().and_then(|l| l.trim().parse().ok());
    let wrong = match (status, peak) {
        _ if said.contains("panicked at") => Some(said.trim().to_owned()),
        (Some(0 | 1 | 3), Some(peak)) if peak <= PEAK_KIB_MAX => None,
        (Some(0 | 1 | 3), Some(peak)) => Some(format!("took {peak} KiB")),
        // What it is by its superblock, and was not made for; or it has none.
        (Some(2), _) if said.contains("this is a journal device") => None,
        (Some(2), _) if said.contains("no ext2/3/4 file system") => None,
        (status, _) => Some(format!("exit status {status:?}: {}", said.trim())),
    };
    (status, wrong.map(|w| format!("{line}: {w}")))
}
