//! `steadfast crash media`.

use std::io::Write;
use std::sync::atomic::Ordering;

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_crash::media::{Cell, Setups, cell, contract, in_contract, kinds, plan};
use steadfast_devices::filter::record::Media;

use super::cli::{CrashMedia, Looks};
use super::corpus::NOTE;
use super::stops::{self, Stoppable};
use crate::terminal::Progress;
use crate::{Outcome as Exit, Usage, document};

/// What a medium breaks, for each set-up; fewer where somebody has asked to stop.
struct Row {
    media: Media,
    cells: Vec<(Setups, Cell)>,
}

/// Runs the workloads on every set-up and medium, and prints the table.
pub fn media(args: &CrashMedia, out: &mut dyn Write) -> Result<Exit> {
    let only: Option<Media> = match &args.media {
        Some(name) => Some(name.parse().map_err(|e| Usage(format!("--media: {e}")))?),
        None => None,
    };
    if args.states == 0 {
        return Err(Usage("--states 0: at least one state a cut is needed".into()).into());
    }
    let stops = stops::on_signals(NOTE)?;
    head(args.looks, out)?;
    let kinds = only.map_or_else(kinds, |media| vec![media]);
    let all = (kinds.len() * Setups::ALL.len()) as f64;
    let progress = Progress::start();
    let (mut rows, mut stopped) = (Vec::new(), false);
    for media in kinds {
        let mut cells = Vec::new();
        for setup in Setups::ALL {
            let done = rows.len() * Setups::ALL.len() + cells.len();
            progress.set(done as f64 / all, &format!("{media}, {}", setup.name()));
            let made = setup.make().map_err(|e| Usage(e.to_string()))?.on(media);
            let made = Stoppable::new(&made, &stops);
            match cell(&made, &plan(args.states)) {
                Ok(cell) => cells.push((setup, cell)),
                Err(_) if stops.load(Ordering::Relaxed) > 0 => {
                    stopped = true;
                    break;
                }
                Err(e) => return Err(Usage(format!("{media}, {}: {e}", setup.name())).into()),
            }
        }
        let row = Row { media, cells };
        progress.aside(|| print_row(args.looks, &row, out))?;
        rows.push(row);
        if stopped {
            break;
        }
    }
    progress.finish();
    if args.looks.json {
        json(&rows, stopped, out)?;
    } else if stopped {
        writeln!(out, "\nstopped: the table is not complete")?;
    }
    let good = rows.iter().all(|Row { media, cells }| {
        let bad = |(setup, cell): &(Setups, Cell)| *setup != Setups::Ext2 && cell.wrong() > 0;
        !in_contract(*media) || !cells.iter().any(bad)
    });
    Ok(match (good, stopped) {
        (false, _) => Exit::Problem,
        (true, true) => Exit::Stopped,
        (true, false) => Exit::Good,
    })
}

fn head(looks: Looks, out: &mut dyn Write) -> Result<()> {
    if looks.markdown {
        let heads = Setups::ALL.map(Setups::name);
        writeln!(out, "| medium | contract | {} |", heads.join(" | "))?;
        writeln!(out, "|---|---|{}", "---|".repeat(heads.len()))?;
    } else if !looks.json {
        writeln!(
            out,
            "{:<24} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "set-up", "states", "wrong", "refused", "damaged", "broken"
        )?;
    }
    // Before there is any progress.
    Ok(out.flush()?)
}

fn print_row(looks: Looks, row: &Row, out: &mut dyn Write) -> Result<()> {
    let Row { media, cells } = row;
    if looks.markdown {
        let cells = cells.iter().map(|(_, cell)| cell.to_string());
        let lacking = Setups::ALL.len() - row.cells.len();
        let cells: Vec<_> =
            cells.chain(std::iter::repeat_n("not run".to_owned(), lacking)).collect();
        writeln!(out, "| {media} | {} | {} |", contract(*media), cells.join(" | "))?;
    } else if !looks.json {
        writeln!(out, "\n{media} ({})", contract(*media))?;
        for (setup, cell) in cells {
            let Cell { states, refused, damaged, broken, .. } = cell;
            writeln!(
                out,
                "  {:<22} {states:>8} {:>8} {refused:>8} {damaged:>8} {broken:>8}",
                setup.name(),
                cell.wrong(),
            )?;
        }
    }
    Ok(out.flush()?)
}

fn json(rows: &[Row], stopped: bool, out: &mut dyn Write) -> Result<()> {
    let cell = |(setup, cell): &(Setups, Cell)| {
        json!({
            "setup": setup.name(),
            "states": cell.states,
            "wrong": cell.wrong(),
            "refused": cell.refused,
            "damaged": cell.damaged,
            "broken": cell.broken,
            "workloads": cell.workloads,
            "first": cell.first,
        })
    };
    let row = |Row { media, cells }: &Row| {
        json!({
            "medium": media.to_string(),
            "contract": contract(*media),
            "in_contract": in_contract(*media),
            "setups": cells.iter().map(cell).collect::<Vec<_>>(),
        })
    };
    let media: Vec<Value> = rows.iter().map(row).collect();
    let body = json!({ "stopped": stopped, "media": media });
    Ok(document::print(out, "steadfast-media", 1, body)?)
}
