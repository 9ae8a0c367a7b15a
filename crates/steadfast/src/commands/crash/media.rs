//! `steadfast crash media`.

use std::io::Write;

use anyhow::{Result, anyhow};
use steadfast_crash::media::{Setups, cell, contract, in_contract, kinds, plan};
use steadfast_devices::filter::record::Media;

use super::cli::CrashMedia;
use crate::Outcome as Exit;
use crate::Usage;
use crate::terminal::Progress;

/// Runs the workloads on every set-up and medium, and prints the table.
pub fn media(args: &CrashMedia, out: &mut dyn Write) -> Result<Exit> {
    let only: Option<Media> = match &args.media {
        Some(name) => Some(name.parse().map_err(|e| Usage(format!("--media: {e}")))?),
        None => None,
    };
    if args.states == 0 {
        return Err(Usage("--states 0: at least one state a cut is needed".into()).into());
    }
    let heads: Vec<&str> = Setups::ALL.iter().map(|setup| setup.name()).collect();
    writeln!(out, "| medium | contract | {} |", heads.join(" | "))?;
    writeln!(out, "|---|---|{}", "---|".repeat(heads.len()))?;
    let kinds = only.map_or_else(kinds, |media| vec![media]);
    let (all, mut done, mut good) = ((kinds.len() * heads.len()) as f64, 0.0, true);
    let progress = Progress::start();
    for media in kinds {
        let mut cells = Vec::new();
        for setup in Setups::ALL {
            progress.set(done / all, &format!("{media}, {}", setup.name()));
            let made = setup.make().map_err(|e| anyhow!(e))?.on(media);
            let cell = cell(&made, &plan(args.states)).map_err(|e| anyhow!(e))?;
            good &= cell.wrong() == 0 || setup == Setups::Ext2 || !in_contract(media);
            cells.push(cell.to_string());
            done += 1.0;
        }
        writeln!(out, "| {media} | {} | {} |", contract(media), cells.join(" | "))?;
    }
    progress.finish();
    Ok(if good { Exit::Good } else { Exit::Problem })
}
