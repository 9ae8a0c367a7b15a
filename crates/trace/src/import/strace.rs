//! The text of `strace -f -ttt -T -y -s0`, with or without `--seccomp-bpf`: which lines are one
//! call.
//!
//! Of a call that another one interrupts there are two lines: `CALL(ARGUMENTS <unfinished ...>` and
//! `<... CALL resumed>ARGUMENTS) = RESULT <SECONDS>`. A child of clone(2) or vfork(2) may make
//! calls between the two, so those are looked for first: a child begins where its parent's call
//! began.

use std::collections::HashMap;
use std::path::Path;

use super::build::TraceBuild;
use super::processes::Processes;
use super::strace_line::{StraceCall, head, parse};

pub(super) use super::strace_line::is_line;

/// Calls that begin a process or a thread.
pub(super) fn is_clone(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}

/// Reads all lines.
pub(super) fn read(lines: &[String], folder: &Path, build: &mut TraceBuild) -> Result<(), String> {
    if !folder.is_absolute() {
        return Err("name the folder that counts (--folder DIR)".into());
    }
    let mut clones = interrupted_clones(lines);
    let mut processes = Processes::new(folder);
    // Of each thread the call that has not returned: when it began, its text, and its line.
    let mut begun: HashMap<u32, (u64, &str, u64)> = HashMap::new();
    for line in lines {
        let number = build.next_line();
        let Some((thread, time, rest)) = head(line) else {
            build.leave_out("no line of strace -f -ttt");
            continue;
        };
        if rest.starts_with("+++") {
            if !rest.contains("superseded") {
                processes.exited((thread, time), build);
            }
            continue;
        }
        if rest.starts_with("---") {
            continue;
        }
        if let Some(text) = rest.strip_suffix("<unfinished ...>") {
            begun.insert(thread, (time, text.trim_end(), number));
            if let Some(call) = clones.remove(&number) {
                processes.cloned(&call, build);
            }
            continue;
        }
        let whole;
        let (time, text, is_resumed) = match resumed(rest) {
            None => (time, rest, false),
            Some((_, more)) => match begun.remove(&thread) {
                Some((time, text, _)) => {
                    whole = format!("{text}{more}");
                    (time, whole.as_str(), true)
                }
                // --seccomp-bpf: what is not traced is not begun.
                None => {
                    build.leave_out("resumed, and its beginning is not there");
                    continue;
                }
            },
        };
        match parse(thread, time, text) {
            Some(call) => {
                if is_clone(&call.name) && !is_resumed {
                    processes.cloned(&call, build);
                }
                processes.call(&call, build);
            }
            None => build.leave_out(match text.contains(" = ?") {
                true => "has not returned",
                false => "not understood (is -T missing?)",
            }),
        }
    }
    build.leave_out_lines(begun.into_values().map(|(.., line)| line), "has not returned");
    Ok(())
}

fn resumed(rest: &str) -> Option<(&str, &str)> {
    rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"))
}

/// Of each line, from 1, that begins a call that makes a process, and does not end it, the whole
/// call.
fn interrupted_clones(lines: &[String]) -> HashMap<u64, StraceCall> {
    let (mut begun, mut whole) = (HashMap::new(), HashMap::new());
    for (number, line) in (1..).zip(lines) {
        let Some((thread, time, rest)) = head(line) else { continue };
        if let Some(text) = rest.strip_suffix("<unfinished ...>") {
            if text.split_once('(').is_some_and(|(name, _)| is_clone(name)) {
                begun.insert(thread, (number, time, text.trim_end()));
            }
        } else if let Some((_, more)) = resumed(rest)
            && let Some((number, time, text)) = begun.remove(&thread)
            && let Some(call) = parse(thread, time, &format!("{text}{more}"))
        {
            whole.insert(number, call);
        }
    }
    whole
}
