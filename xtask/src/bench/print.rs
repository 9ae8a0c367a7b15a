//! What all benchmarks print: tables, and the machine on which they ran.

use steadfast_statistics::load::{Load, not_ranked};

/// A table as Markdown has it, which can be read as it is, too.
pub fn table(head: &[String], rows: &[Vec<String>]) {
    print!("{}", table_text(head, rows));
}

/// A table as Markdown has it.
pub fn table_text(head: &[String], rows: &[Vec<String>]) -> String {
    let width = |i: usize| {
        let below = rows.iter().filter_map(|row| row.get(i)).map(String::len).max();
        below.unwrap_or(0).max(head[i].len())
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        let mut out = String::from("|");
        for (i, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            match i {
                0 => out += &format!(" {cell:<width$} |"),
                _ => out += &format!(" {cell:>width$} |"),
            }
        }
        text += &out;
        text.push('\n');
    };
    line(head);
    let rule: Vec<String> = (0..head.len())
        .map(|i| if i == 0 { "-".repeat(widths[i]) } else { "-".repeat(widths[i] - 1) + ":" })
        .collect();
    line(&rule);
    rows.iter().for_each(|row| line(row));
    text
}

/// Processors and kernel of this machine.
fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processors} processors, Linux {}", kernel.trim())
}

/// The machine, its load before what was measured and now, and whether anything is ranked.
pub fn print_machine(before: Option<Load>) {
    let said = |load: Option<Load>| load.map_or("unknown".into(), |l| format!("{:.2}", l.average));
    println!("\n{}; load {} before, {} after.", machine(), said(before), said(Load::now()));
    let first_line = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().next().unwrap_or("not there").to_owned()
    };
    println!(
        "All programs ran in the scheduler group of this one ({}); FUSE io_uring: {}.",
        first_line("/proc/self/autogroup"),
        first_line("/sys/module/fuse/parameters/enable_uring")
    );
    if let Some(why) = not_ranked(before) {
        println!("Nothing is said of who is faster ({why}): run it on a quiet machine.");
    }
}
