//! `steadfast sweep status`, and the words of progress.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use steadfast_sweep::{PlanFile, SweepCounts, SweepProgress};

use super::error::to_anyhow;
use super::page;
use crate::cli::SweepStatus;
use crate::commands::lab::outputs;
use crate::{CommandEnd, document};

/// Shows how far it is.
pub fn status(args: &SweepStatus, out: &mut dyn Write) -> Result<CommandEnd> {
    let [report] = outputs::tried([("--report", args.report.as_deref())], [&args.plan])?;
    let plan = PlanFile::open(&args.plan).map_err(to_anyhow)?;
    let done = match report {
        None => SweepProgress::new(&plan, &args.results).look().map_err(to_anyhow)?,
        Some(report) => {
            let (page, done) = page::of(&plan, &args.results)?;
            report.write(page.html())?;
            done
        }
    };
    if args.json {
        let body = json!({
            "plan": plan.fingerprint(),
            "cases": done.cases,
            "done": done.done,
            "failed": done.failed,
            "shards": done.shards,
            "shards_begun": done.shards_begun,
            "shards_done": done.shards_done,
            "per_second": done.per_second,
            "seconds_left": done.seconds_left,
        });
        document::print(out, "steadfast-sweep-status", 1, body)?;
    } else {
        writeln!(out, "{}", words(&done))?;
    }
    let is_whole = done.shards_done == done.shards;
    Ok(if is_whole { CommandEnd::Good } else { CommandEnd::Problem })
}

/// In a line.
pub fn words(done: &SweepCounts) -> String {
    let SweepCounts { done: cases_done, failed, cases, shards_done, shards_begun, shards, .. } =
        done;
    let rate = done.per_second.map_or_else(String::new, |rate| format!(", {rate:.2}/s"));
    let left = done.seconds_left.filter(|_| cases_done < cases);
    let left = left.map_or_else(String::new, |left| format!(", about {left:.0} s left"));
    format!(
        "{cases_done} of {cases} cases ({failed} failed){rate}{left}; of {shards} shards \
         {shards_done} whole, {shards_begun} begun"
    )
}
