//! `soak merge` and `soak status`.

use std::io::Write;

use steadfast_sweep::{CaseOutcome, MergeTotals, SweepProgress};

use crate::args::ResultArgs;
use crate::error::{Result, SoakError};
use crate::note;
use crate::plan::opened;

/// Verifies the results, and prints the table.
pub fn merge(args: &ResultArgs, out: &mut dyn Write) -> Result<bool> {
    let (plan, cases) = opened(&args.plan)?;
    let mut table = cases.table();
    let merged = steadfast_sweep::merge(&plan, &args.results, &mut |case, outcome| {
        match outcome {
            CaseOutcome::Done(result) => {
                let result = serde_json::from_value(result).map_err(|e| e.to_string())?;
                table.take(&case.name, result).map_err(|e| e.to_string())?;
            }
            CaseOutcome::Failed(why) => table.take_failed(&case.name, &why),
        }
        Ok(())
    })?;
    write!(out, "{table}")?;
    let MergeTotals { cases, seconds, hosts, .. } = merged;
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    note(&format!("Merged: {cases} cases, {seconds:.1} s together, on {}", hosts.join(", ")));
    Ok(table.is_good())
}

/// Says how far it is.
pub fn status(args: &ResultArgs, out: &mut dyn Write) -> Result<bool> {
    let (plan, _) = opened(&args.plan)?;
    let [folder] = &args.results[..] else {
        return Err(SoakError::usage("status looks at one folder of results"));
    };
    let done = SweepProgress::new(&plan, folder).look()?;
    writeln!(out, "{done}")?;
    Ok(done.shards_done == done.shards)
}
