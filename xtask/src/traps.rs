//! `cargo xtask traps`: the traps of external journals, with e2fsprogs and the kernel and with
//! steadfast, held against what docs/external-journals.md says.

use std::path::Path;

use anyhow::Context;
use comfy_table::{ContentArrangement, Table, presets};
use steadfast_suite::TargetKind;
use steadfast_suite::traps::{Row, Sides, TRAPS, TrapRun, documented};

use crate::{conformance, packages, value};

const DOCUMENT: &str = "docs/external-journals.md";
/// Columns of the table where it does not go to a terminal.
const WIDTH: u16 = 150;

/// Walks into all traps; whether ours came out of each as documented.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut on, mut filter, mut json, mut markdown) = ("steadfast", "", false, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--on" => on = value("--on", &mut args)?,
            "--filter" => filter = value("--filter", &mut args)?,
            "--json" => json = true,
            "--markdown" => markdown = true,
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    anyhow::ensure!(
        rustix::process::geteuid().is_root(),
        "traps needs root: it mounts images on loop devices"
    );
    let TargetKind::Steadfast(program) = conformance::kind(root, on)? else {
        anyhow::bail!("--on takes steadfast or steadfast:PATH here");
    };
    packages::install(&[])?;
    let mut rows = Vec::new();
    for trap in TRAPS.iter().filter(|trap| trap.name.contains(filter)) {
        rows.push(trap.run(&program, Sides::Both).with_context(|| trap.name)?);
    }
    anyhow::ensure!(!rows.is_empty(), "no trap's name contains '{filter}'");
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else if markdown {
        for row in &rows {
            println!("{}", row.markdown());
        }
    } else {
        println!("{}", table(&rows));
    }
    let document = std::fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    let mut all_good = true;
    for row in &rows {
        if let Some(why) = fault(row, &document) {
            eprintln!("{}: {why}", row.trap);
            all_good = false;
        }
    }
    Ok(all_good)
}

/// What is wrong with our side of a row.
fn fault(row: &Row, document: &str) -> Option<String> {
    if !row.ours.outcome.is_good() {
        return Some("steadfast does not come out of it safely".into());
    }
    match documented(document, row.trap) {
        None => Some(format!("not in {DOCUMENT}")),
        Some(text) if text != row.ours.cell() => Some(format!(
            "steadfast does not do what {DOCUMENT} says\n  documented: {text}\n  seen:       {}",
            row.ours.cell()
        )),
        Some(_) => None,
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(WIDTH);
    }
    table.set_header(["trap", "e2fsprogs and kernel", "steadfast"]);
    let cell = |seen: &TrapRun| seen.lines().join("\n").replace(['`', '*'], "");
    for row in rows {
        let stock = row.stock.as_ref().map_or_else(String::new, cell);
        table.add_row([row.trap.to_owned(), stock, cell(&row.ours)]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_suite::traps::TrapVerdict;

    fn row(outcome: TrapVerdict) -> Row {
        let ours =
            TrapRun { steps: vec![], e2fsck_clean: true, files: 1, files_read_back: 1, outcome };
        Row { trap: "a trap", stock: Some(ours.clone()), ours }
    }

    #[test]
    fn a_row_that_is_not_as_documented_is_a_fault() {
        let good = row(TrapVerdict::NothingLost);
        assert_eq!(fault(&good, &good.markdown()), None);
        assert!(fault(&good, "").unwrap().contains("not in"));
        let said = row(TrapVerdict::LossSaid);
        assert!(fault(&said, &good.markdown()).unwrap().contains("documented: "));
        let lost = row(TrapVerdict::DataLost);
        assert!(fault(&lost, &lost.markdown()).unwrap().contains("safely"));
        assert!(table(&[good]).to_string().contains("a trap"));
    }
}
