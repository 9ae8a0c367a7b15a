//! Programs under power cuts: `steadfast crash run` finds what they forget, and nothing else.
//! As root, on a kernel with FUSE: otherwise the tests say SKIPPED.

#[path = "crash/baseline.rs"]
mod baseline;
#[path = "crash/budget.rs"]
mod budget;
#[path = "crash/ci.rs"]
mod ci;
#[path = "crash/control.rs"]
mod control;
#[path = "crash/control_bad.rs"]
mod control_bad;
#[path = "crash/examples.rs"]
mod examples;
#[path = "crash/failing.rs"]
mod failing;
#[path = "crash/helpers.rs"]
mod helpers;
#[path = "crash/joined.rs"]
mod joined;
#[path = "crash/judge_files.rs"]
mod judge_files;
#[path = "crash/judged.rs"]
mod judged;
#[path = "crash/kernel.rs"]
mod kernel;
#[path = "crash/kinds.rs"]
mod kinds;
#[path = "crash/lab.rs"]
mod lab;
#[path = "crash/promises.rs"]
mod promises;
#[path = "crash/refused.rs"]
mod refused;
#[path = "crash/replaced.rs"]
mod replaced;
#[path = "crash/scenario.rs"]
mod scenario;
#[path = "crash/screen.rs"]
mod screen;
#[path = "crash/servers.rs"]
mod servers;
#[path = "crash/several.rs"]
mod several;
#[path = "crash/source_lines.rs"]
mod source_lines;
#[path = "crash/source_lines_hard.rs"]
mod source_lines_hard;
#[path = "crash/sqlite.rs"]
mod sqlite;
#[path = "crash/stopped.rs"]
mod stopped;
