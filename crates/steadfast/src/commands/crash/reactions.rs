//! What came of the words of the control socket: for people, and as JSON.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_crash::program::describe::counted;
use steadfast_crash::program::{ProgramRun, Reactions, RunParts};

use super::ci::findings::CallPlace;

/// What was named, and what the program did when a call of its own failed.
pub struct ReactionReport {
    reactions: Reactions,
    parts: RunParts,
    marks: u64,
    failed: u64,
}

impl ReactionReport {
    /// Of a run; who has a judge lets it judge what the program acknowledged.
    pub fn of(run: &ProgramRun, has_judge: bool) -> ReactionReport {
        let reactions = if has_judge { Reactions::default() } else { Reactions::of(run) };
        let marks = run.lines.iter().filter(|line| line.marked).count() as u64;
        let failed = run.calls.iter().filter(|call| call.injected.is_some()).count() as u64;
        ReactionReport { reactions, parts: run.parts(), marks, failed }
    }

    /// What was acknowledged and should not have been, and the call that had failed.
    pub fn findings(&self, run: &ProgramRun) -> Vec<(String, usize)> {
        self.reactions.wrong.iter().map(|wrong| (wrong.what(run), wrong.call)).collect()
    }

    /// What may have been acknowledged or not.
    pub fn unmeasured(&self) -> impl Iterator<Item = String> {
        self.reactions.unmeasured.iter().cloned()
    }

    /// For people; nothing where nothing was asked for.
    pub fn text(&self, run: &ProgramRun, out: &mut dyn Write) -> Result<()> {
        let (cuts, parts) = (self.parts.cuts.len() as u64, self.parts.parts.len() as u64);
        let all =
            [(self.marks, "mark"), (cuts, "cut"), (parts, "part"), (self.failed, "failed call")];
        let said = all.iter().filter(|(count, _)| *count > 0);
        let said: Vec<String> = said.map(|(count, what)| counted(*count, what)).collect();
        if said.is_empty() {
            return Ok(());
        }
        writeln!(out, "\ncontrol   {}", said.join(", "))?;
        for (what, call) in self.findings(run) {
            writeln!(out, "found     {what}")?;
            for line in CallPlace::of(&run.stacks, Some(call)).iter().flat_map(CallPlace::lines) {
                writeln!(out, "    {line}")?;
            }
        }
        Ok(())
    }

    /// For programs.
    pub fn json(&self, run: &ProgramRun) -> Value {
        let calls = run.calls.iter().filter(|call| call.injected.is_some());
        let failed = calls.map(
            |call| json!({ "call": call.to_string(), "error": call.injected.map(|e| e.name()) }),
        );
        json!({
            "marks": self.marks,
            "cuts": self.parts.cuts.len(),
            "parts": self.parts.parts.len(),
            "failed": failed.collect::<Vec<_>>(),
            "findings": self.findings(run).iter().map(|(what, _)| what).collect::<Vec<_>>(),
        })
    }
}
