//! What the source says in words, sentence by sentence.

use std::fmt::Write as _;

use crate::results::Results;
use crate::wrap::wrapped;

/// Each sentence in full, for a terminal.
pub(super) fn in_words(results: &Results) -> String {
    let mut out = String::new();
    for s in &results.sentences {
        // Writing to a String cannot fail, so the results are dropped here and below.
        let _ = writeln!(out, "{}: {}", s.name, s.verdict.name());
        out += &wrapped(&format!("Said: \"{}\"", s.said), 2);
        out += &wrapped(&format!("Measured: {}.", s.measured()), 2);
        out += &wrapped(&format!("Needed: {} ({}).", s.criterion, s.reason), 2);
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
    out += "| said | measured | figures say | needed, and why so |\n|---|---|---|---|\n";
    for s in &results.sentences {
        let verdict = match &s.explained {
            Some(why) => format!("{}: {why}", s.verdict.name()),
            None => s.verdict.name().into(),
        };
        let cells = [
            format!("\"{}\"", s.said),
            s.measured(),
            verdict,
            format!("{} ({})", s.criterion, s.reason),
        ];
        let _ = writeln!(out, "| {} |", cells.map(|c| c.replace('|', "\\|")).join(" | "));
    }
    out.push('\n');
    out
}
