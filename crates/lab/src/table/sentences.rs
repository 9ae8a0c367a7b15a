//! What the source says in words, sentence by sentence.

use std::fmt::Write as _;

use crate::results::Results;
use crate::wrap::wrapped;

/// Each sentence in full, for a terminal.
pub(super) fn in_words(results: &Results) -> String {
    let mut out = String::new();
    for s in &results.sentences {
        // Writing to a String cannot fail, so the results are dropped here and below.
        let _ = writeln!(out, "{}: {}", s.name, s.found());
        out += &wrapped(&format!("Said: \"{}\"", s.said), 2);
        if !s.criterion.is_empty() {
            out += &wrapped(&format!("Measured: {}.", s.measured()), 2);
            out += &wrapped(&format!("Needed: {} ({}).", s.criterion, s.reason), 2);
        }
        if let Some(why) = &s.by_construction {
            out += &wrapped(&format!("By construction: {why}"), 2);
        }
        if let Some(why) = &s.explained {
            out += &wrapped(&format!("Why: {why}"), 2);
        }
        out.push('\n');
    }
    out
}

/// The same as a table in Markdown.
pub(super) fn as_markdown(results: &Results) -> String {
    let mut out = String::new();
    if results.sentences.is_empty() {
        return out;
    }
    out += "| said | measured | figures say | needed, and why so | by construction |\n";
    out += "|---|---|---|---|---|\n";
    for s in &results.sentences {
        let verdict = match &s.explained {
            Some(why) => format!("{}: {why}", s.found()),
            None => s.found().into(),
        };
        let needed = match s.criterion.is_empty() {
            true => "-".into(),
            false => format!("{} ({})", s.criterion, s.reason),
        };
        let by_construction = s.by_construction.clone().unwrap_or_else(|| "no".into());
        let said = format!("\"{}\"", s.said);
        let cells = [said, s.measured(), verdict, needed, by_construction];
        let _ = writeln!(out, "| {} |", cells.map(|c| c.replace('|', "\\|")).join(" | "));
    }
    out.push('\n');
    out
}
