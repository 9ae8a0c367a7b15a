//! The tables that a terminal shows.

use comfy_table::{Cell, CellAlignment, Table, presets};

use crate::results::{Results, RiskRow, Row};

/// All tables of a run, as text without colours.
pub fn text(results: &Results) -> String {
    let mut out = String::new();
    for part in [speed(results), ratio(results), risk(results)].into_iter().flatten() {
        out.push_str(&part);
        out.push_str("\n\n");
    }
    for note in &results.notes {
        out.push_str(&format!("Note: {note}\n"));
    }
    out
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table
}

fn number(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Test names in the order in which they first appear.
pub(crate) fn tests(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in &results.rows {
        if !names.contains(&row.test.as_str()) {
            names.push(&row.test);
        }
    }
    names
}

pub(crate) fn find<'r>(results: &'r Results, test: &str, variant: &str) -> Option<&'r Row> {
    results.rows.iter().find(|r| r.test == test && r.variant == variant)
}

fn speed(results: &Results) -> Option<String> {
    let variants: Vec<_> =
        results.variants.iter().filter(|v| v.virtual_seconds.is_some()).collect();
    if results.rows.is_empty() {
        return None;
    }
    let mut table = plain();
    let mut header = vec![Cell::new("MB/s")];
    for v in &variants {
        header.push(number(v.name.clone()));
        if results.rows.iter().any(|r| r.variant == v.name && r.published_kb_per_s.is_some()) {
            header.push(number("published".into()));
        }
    }
    table.set_header(header);
    for test in tests(results) {
        let mut cells = vec![Cell::new(label(results, test))];
        for v in &variants {
            let row = find(results, test, &v.name);
            cells.push(number(row.map_or("-".into(), |r| mb(r.kb_per_s))));
            if results.rows.iter().any(|r| r.variant == v.name && r.published_kb_per_s.is_some()) {
                let published = row.and_then(|r| r.published_kb_per_s);
                cells.push(number(published.map_or("-".into(), mb)));
            }
        }
        table.add_row(cells);
    }
    Some(table.to_string())
}

/// The test's name, with the figure where it is not the children's sum.
fn label(results: &Results, test: &str) -> String {
    let parent =
        results.rows.iter().any(|r| r.test == test && r.figure == crate::results::Figure::Parent);
    if parent { format!("{test} (parent)") } else { test.into() }
}

/// kB/s as MB/s (1 MB = 1024 kB) with one decimal.
fn mb(kb_per_s: f64) -> String {
    format!("{:.1}", kb_per_s / 1024.0)
}

fn ratio(results: &Results) -> Option<String> {
    let baseline = &results.ratios.first()?.baseline;
    let mut table = plain();
    let mut header = vec![Cell::new(format!("speed over '{baseline}'"))];
    let variants: Vec<&str> = results
        .variants
        .iter()
        .map(|v| v.name.as_str())
        .filter(|v| results.ratios.iter().any(|r| r.variant == *v))
        .collect();
    let has_published =
        |v: &str| results.ratios.iter().any(|r| r.variant == v && r.published_ratio.is_some());
    for v in &variants {
        header.push(number((*v).into()));
        if has_published(v) {
            header.push(number("published".into()));
            header.push(number("difference".into()));
        }
    }
    table.set_header(header);
    for test in tests(results) {
        let mut cells = vec![Cell::new(label(results, test))];
        for v in &variants {
            let r = results.ratios.iter().find(|r| r.test == test && r.variant == *v);
            cells.push(number(r.map_or("-".into(), |r| format!("{:.2}x", r.ratio))));
            if has_published(v) {
                let p = r.and_then(|r| r.published_ratio);
                let d = r.and_then(|r| r.difference_percent);
                cells.push(number(p.map_or("-".into(), |p| format!("{p:.2}x"))));
                cells.push(number(d.map_or("-".into(), |d| format!("{d:+.1} %"))));
            }
        }
        table.add_row(cells);
    }
    Some(table.to_string())
}

/// The columns of the risk table: heading and value.
pub(crate) fn risk_cells(r: &RiskRow) -> Vec<(&'static str, String)> {
    let e2fsck = if r.e2fsck_checked == 0 {
        "not run".into()
    } else {
        format!("{} of {}", r.e2fsck_damage, r.e2fsck_checked)
    };
    vec![
        ("cuts", r.cuts.to_string()),
        ("broken promises", r.broken_promises.to_string()),
        ("exposure p50", bytes(r.exposure_bytes.p50)),
        ("p99", bytes(r.exposure_bytes.p99)),
        ("max", bytes(r.exposure_bytes.max)),
        ("ops max", format!("{:.0}", r.exposure_operations.max)),
        ("ms max", format!("{:.0}", r.exposure_ms.max)),
        ("torn", r.torn_writes.to_string()),
        ("foreign", bytes(r.foreign_bytes as f64)),
        ("order", r.order_violations.to_string()),
        ("damage", r.damage.to_string()),
        ("e2fsck", e2fsck),
        ("person", r.needs_person.to_string()),
        ("recovery ms p50", format!("{:.1}", r.recovery_ms.p50)),
        ("max", format!("{:.1}", r.recovery_ms.max)),
    ]
}

fn risk(results: &Results) -> Option<String> {
    let first = results.risk.first()?;
    let mut table = plain();
    let mut header = vec![Cell::new("power cuts")];
    header.extend(risk_cells(first).into_iter().map(|(h, _)| number(h.into())));
    table.set_header(header);
    for r in &results.risk {
        let mut cells = vec![Cell::new(&r.variant)];
        cells.extend(risk_cells(r).into_iter().map(|(_, v)| number(v)));
        table.add_row(cells);
    }
    Some(table.to_string())
}

/// Bytes with a binary unit.
pub(crate) fn bytes(n: f64) -> String {
    match n {
        n if n >= 1024.0 * 1024.0 => format!("{:.1} MiB", n / 1024.0 / 1024.0),
        n if n >= 1024.0 => format!("{:.0} KiB", n / 1024.0),
        n => format!("{n:.0} B"),
    }
}
