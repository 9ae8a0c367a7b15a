//! `steadfast sweep run`.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use steadfast_sweep::{CaseOutcome, PlanFile, ShardEnd, ShardRun, chosen_shard};

use super::error::to_anyhow;
use super::{kind, program};
use crate::cli::SweepRun;
use crate::document;
use crate::{CommandEnd, Usage};

/// Runs a shard, or one case.
pub fn run(args: &SweepRun, out: &mut dyn Write) -> Result<CommandEnd> {
    let plan = PlanFile::open(&args.plan).map_err(to_anyhow)?;
    if let Some(name) = &args.case {
        return one(&plan, name, out);
    }
    let variable = |name: &str| std::env::var(name).ok();
    let chosen = chosen_shard(plan.shards(), args.shard, variable);
    let chosen = chosen.map_err(|e| Usage(format!("{}: {e}", args.plan.display())))?;
    chosen.touch_status_file().map_err(to_anyhow)?;
    let kind = kind::of_plan(&plan)?;
    let folder = &args.output;
    fs::create_dir_all(folder).map_err(|e| Usage(format!("-o {}: {e}", folder.display())))?;
    let shard = ShardRun::new(&plan, chosen.shard, folder).with_tools(program::tools());
    let mut end = None;
    kind.with_runner(&mut |run| {
        end = Some(shard.run(&mut *run).map_err(to_anyhow)?);
        Ok(())
    })?;
    let ShardEnd { file, cases, resumed, failed, .. } = end.context("a shard ends")?;
    if args.json {
        let body = json!({
            "plan": plan.fingerprint(),
            "shard": chosen.shard,
            "shards": plan.shards(),
            "said_by": chosen.said_by,
            "file": file,
            "cases": cases,
            "resumed": resumed,
            "failed": failed,
        });
        document::print(out, "steadfast-sweep-run", 1, body)?;
    } else {
        let (number, shards) = (chosen.shard, plan.shards());
        let before = match resumed {
            0 => String::new(),
            n => format!(", {n} of them from a former run"),
        };
        let failed = if failed > 0 { format!("; {failed} failed") } else { String::new() };
        writeln!(
            out,
            "Shard {number} of {shards}: {cases} cases{before}{failed}: {}",
            file.display()
        )?;
    }
    Ok(if failed > 0 { CommandEnd::Problem } else { CommandEnd::Good })
}

/// One case, to look at.
fn one(plan: &PlanFile, name: &str, out: &mut dyn Write) -> Result<CommandEnd> {
    let planned = plan.find(name).map_err(to_anyhow)?;
    let mut outcome = None;
    kind::of_plan(plan)?.with_runner(&mut |run| {
        outcome = Some(run(&planned.case));
        Ok(())
    })?;
    let (result, failed) = match outcome.context("a case ends")? {
        CaseOutcome::Done(result) => (result, None),
        CaseOutcome::Failed(why) => (Value::Null, Some(why)),
    };
    let has_failed = failed.is_some();
    let body = json!({ "case": name, "failed": failed, "result": result });
    document::print(out, "steadfast-sweep-case", 1, body)?;
    Ok(if has_failed { CommandEnd::Problem } else { CommandEnd::Good })
}
