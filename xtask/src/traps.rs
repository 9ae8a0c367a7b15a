//! `cargo xtask traps`: the traps of external journals, walked into twice: with e2fsprogs and
//! the kernel, and with steadfast.
//!
//! Each trap is a state on two or three image files. It is made once, by the kernel, and then
//! given to both sides. Needs root and loop devices. Nothing but files of its own temporary
//! folder is touched, and all mounts and loop devices are undone.

mod bench;
mod cases;

use std::path::Path;
use std::process::Command;

use crate::step::{self, step};

/// What one side did with a trap.
struct Seen {
    text: String,
    /// It ended well: handled, or refused with nothing lost.
    safe: bool,
}

/// A row of the table.
struct Row {
    trap: &'static str,
    stock: Seen,
    ours: Seen,
}

/// Runs all traps; whether steadfast was safe in each.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    anyhow::ensure!(
        rustix::process::geteuid().is_root(),
        "the traps need root: they mount images on loop devices"
    );
    let build = ["build", "--quiet", "-p", "steadfast"];
    anyhow::ensure!(
        step("building steadfast", || step::run(&mut step::cargo(root, &build))),
        "steadfast does not build"
    );
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), std::path::PathBuf::from);
    let program = target.join("debug/steadfast");
    let mut rows = Vec::new();
    for (name, case) in cases::ALL {
        let bench = bench::Bench::new(&program)?;
        rows.push(case(name, &bench)?);
    }
    print(&rows);
    Ok(rows.iter().all(|row| row.ours.safe))
}

fn print(rows: &[Row]) {
    println!("| trap | e2fsprogs and kernel | steadfast |");
    println!("|---|---|---|");
    for row in rows {
        let mark = |seen: &Seen| if seen.safe { "" } else { "**loss** " };
        println!(
            "| {} | {}{} | {}{} |",
            row.trap,
            mark(&row.stock),
            row.stock.text,
            mark(&row.ours),
            row.ours.text
        );
    }
    let version = Command::new("uname").arg("-r").output();
    if let Ok(out) = version {
        println!("\nkernel {}", String::from_utf8_lossy(&out.stdout).trim());
    }
}
