//! `steadfast sweep status`.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use steadfast_sweep::{PlanFile, SweepProgress};

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
        writeln!(out, "{done}")?;
    }
    let is_whole = done.shards_done == done.shards;
    Ok(if is_whole { CommandEnd::Good } else { CommandEnd::Problem })
}
