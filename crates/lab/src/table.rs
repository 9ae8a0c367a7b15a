//! The tables that a terminal shows.

use comfy_table::{Cell, CellAlignment, Table, presets};

use crate::results::{FilesRow, Point, Results, RiskRow, Row};

/// All tables of a run, as text without colours.
pub fn text(results: &Results) -> String {
    let mut out = String::new();
    let risk = &results.risk;
    let parts = [
        speed(results),
        ratio(results),
        rows("speed", &results.files, |f| &f.variant, files_cells),
        rows("power cuts", risk, |r| &r.variant, exposure_cells),
        rows("found after them", risk, |r| &r.variant, found_cells),
        rows("speed and exposure", &results.speed_and_exposure, |p| &p.variant, point_cells),
    ];
    for part in parts.into_iter().flatten() {
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

/// A column: heading and value.
pub(crate) type Column = (&'static str, String);

/// The columns of what was promised and what was lost.
pub(crate) fn exposure_cells(r: &RiskRow) -> Vec<Column> {
    let lying = r.control_flush_ignored.as_ref();
    let omitted = r.control_flushes_omitted.as_ref();
    let whole = |x: f64| format!("{x:.0}");
    vec![
        ("cuts", r.cuts.to_string()),
        ("broken promises", r.broken_promises.to_string()),
        (
            "control: drive ignores flush",
            lying.map_or("-".into(), |l| l.broken_promises.to_string()),
        ),
        ("control: flushes omitted", omitted.map_or("-".into(), |l| l.broken_promises.to_string())),
        ("lost p50", bytes(r.exposure_bytes.p50)),
        ("p99", bytes(r.exposure_bytes.p99)),
        ("max", bytes(r.exposure_bytes.max)),
        ("calls p50", whole(r.exposure_operations.p50)),
        ("p99", whole(r.exposure_operations.p99)),
        ("max", whole(r.exposure_operations.max)),
        ("ms p50", whole(r.exposure_ms.p50)),
        ("p99", whole(r.exposure_ms.p99)),
        ("max", whole(r.exposure_ms.max)),
    ]
}

/// The columns of what was found after recovery, and of the recovery.
pub(crate) fn found_cells(r: &RiskRow) -> Vec<Column> {
    let e2fsck = if r.e2fsck_checked == 0 {
        "not run".into()
    } else {
        format!("{} of {}", r.e2fsck_damage, r.e2fsck_checked)
    };
    vec![
        ("torn writes", r.torn_writes.to_string()),
        ("torn units", r.torn_units.to_string()),
        ("stale data exposed", bytes(r.stale_bytes as f64)),
        ("out of order", r.order_violations.to_string()),
        ("empty after rename", r.empty_after_rename.to_string()),
        ("replacing", r.empty_after_replace.to_string()),
        ("damage", r.damage.to_string()),
        ("e2fsck", e2fsck),
        ("manual repair", r.manual_repair.to_string()),
        ("recovery ms p50", format!("{:.1}", r.recovery_ms.p50)),
        ("p99", format!("{:.1}", r.recovery_ms.p99)),
        ("max", format!("{:.1}", r.recovery_ms.max)),
    ]
}

/// The columns of the speed under the workload of files.
pub(crate) fn files_cells(f: &FilesRow) -> Vec<Column> {
    vec![
        ("clock", f.clock.name().into()),
        ("calls", f.operations.to_string()),
        ("calls/s in calls", format!("{:.0}", f.operations_per_s)),
        ("fsyncs", f.fsyncs.to_string()),
        ("fsync ms p50", format!("{:.2}", f.fsync_ms.p50)),
        ("p99", format!("{:.2}", f.fsync_ms.p99)),
        ("max", format!("{:.2}", f.fsync_ms.max)),
        ("run s", format!("{:.1}", f.elapsed_seconds)),
    ]
}

/// The columns of the chart's data.
pub(crate) fn point_cells(p: &Point) -> Vec<Column> {
    vec![
        ("speed", format!("{:.0} {}", p.speed, p.speed_unit)),
        ("one cut in 100 takes", bytes(p.exposure_bytes)),
        ("of the last ms", format!("{:.0}", p.exposure_ms)),
    ]
}

/// A table with a row a variant; `None` without rows.
fn rows<R>(
    title: &str,
    rows: &[R],
    name: impl Fn(&R) -> &str,
    cells: impl Fn(&R) -> Vec<Column>,
) -> Option<String> {
    let mut table = plain();
    let mut header = vec![Cell::new(title)];
    header.extend(cells(rows.first()?).into_iter().map(|(h, _)| number(h.into())));
    table.set_header(header);
    for row in rows {
        let mut line = vec![Cell::new(name(row))];
        line.extend(cells(row).into_iter().map(|(_, v)| number(v)));
        table.add_row(line);
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
