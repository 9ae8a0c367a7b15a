//! The columns of each row: heading, figure, and whether it is shown without `--wide`.
//!
//! A new figure in a table is one line here. The heading says which clock a time is of.

use super::cell::{Cell, Unit, bytes};
use crate::results::{
    ControlRow, CopyRow, FilesRow, LegRow, LossRow, Path, Percentiles, Point, RandomReadRow,
    ReadRow, RiskRow, ShownRow, SteadyLoss,
};

/// A column's figure in one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Above it; the same in every row that has it.
    pub heading: String,
    /// Only with `--wide`.
    pub wide: bool,
    /// Any above zero takes from the variant what it promises.
    pub must_be_zero: bool,
    /// A control that did not fail as it must.
    pub blind: bool,
    /// The figure.
    pub cell: Cell,
}

/// Shown always.
fn always(heading: impl Into<String>, cell: Cell) -> Column {
    Column { heading: heading.into(), wide: false, must_be_zero: false, blind: false, cell }
}

/// Shown with `--wide`.
fn wide(heading: impl Into<String>, cell: Cell) -> Column {
    Column { wide: true, ..always(heading, cell) }
}

fn zero(column: Column) -> Column {
    Column { must_be_zero: true, ..column }
}

/// A copy by dd.
pub fn copies(r: &CopyRow) -> Vec<Column> {
    let published = r.published_records_per_s;
    let mut columns = vec![
        wide("records", Cell::count(r.records)),
        always("seconds", Cell::plain(r.seconds, 2)),
        always("records/s", Cell::plain(r.records_per_s, 0)),
        wide("MB/s", Cell::plain(r.bytes as f64 / 1e6 / r.seconds.max(1e-9), 2)),
    ];
    if published.is_some() {
        let difference = published.map(|p| (r.records_per_s / p - 1.0) * 100.0);
        columns.push(always("published", Cell::maybe(published, Unit::Plain(0))));
        columns.push(always("difference", Cell::maybe(difference, Unit::Difference)));
    }
    columns
}

/// Random reads.
pub(crate) fn random_reads(r: &RandomReadRow) -> Vec<Column> {
    let [p50, tail, max] = percentiles("us", &r.latency_us, Unit::Plain(1));
    vec![
        wide("reads", Cell::count(r.reads)),
        wide("seconds", Cell::plain(r.seconds, 2)),
        always("reads/s", Cell::plain(r.reads_per_s, 0)),
        Column { wide: false, ..p50 },
        tail,
        max,
    ]
}

/// What cuts took of a volume.
pub fn legs(r: &LegRow) -> Vec<Column> {
    let ours = |column: Column| if r.model { column } else { zero(column) };
    let kib = |p: &Percentiles| Cell::plain(p.max(), 0);
    vec![
        always("cuts", Cell::Total(r.cuts)),
        ours(always("cuts that lost flushed data", Cell::Rate(r.lost_flushed))),
        always("most lost, KiB", kib(&r.lost_flushed_kb)),
        always("on no disk any more, KiB", kib(&r.gone_kb)),
        ours(always("disks differ", Cell::Rate(r.copies_differ))),
        always("by hand", Cell::Rate(r.by_hand)),
        wide("not readable at all", Cell::Rate(r.refused)),
        wide("most lost that was not flushed, KiB", kib(&r.lost_unflushed_kb)),
    ]
}

/// Median, 99th percentile or what there is instead of it, and maximum.
fn percentiles(what: &str, p: &Percentiles, unit: Unit) -> [Column; 3] {
    let tail = p.tail();
    let max = p.p99().map(|_| p.max());
    [
        wide(format!("{what} p50"), Cell::of(p.p50(), unit)),
        always(format!("{what} {}", tail.name()), Cell::of(tail.value(), unit)),
        wide(format!("{what} max"), Cell::maybe(max, unit)),
    ]
}

/// All that had been acknowledged and was lost, without a promise about it: what is empty after a
/// rename is in it.
const LOST: &str = "acknowledged data lost (unsynced)";

/// What was promised and what was lost.
pub fn exposure(r: &RiskRow) -> Vec<Column> {
    let mut columns = vec![
        always("cuts", Cell::Total(r.cuts)),
        always("distinct places", Cell::Places(r.cuts_with_broken_promises)),
        zero(wide("broken promises", Cell::count(r.broken_promises))),
        zero(always("cuts with broken promises", Cell::Rate(r.cuts_with_broken_promises))),
        control("control: drive ignores flush", r.control_flush_ignored.as_ref()),
        control("control: flushes omitted", r.control_flushes_omitted.as_ref()),
    ];
    columns.extend(percentiles(LOST, &r.exposure_bytes, Unit::Bytes));
    columns
        .extend(percentiles("calls lost", &r.exposure_operations, Unit::Plain(0)).map(only_wide));
    // The kernel's is measured by the wall clock, ours by the simulation's: two columns.
    let age = format!("lost, age ms, {} clock,", r.run_clock.name());
    columns.extend(percentiles(&age, &r.exposure_ms, Unit::Plain(0)));
    // Beside the kernel's, which have fewer cuts: of as many of these.
    if let (Some(bytes), Some(ms)) = (&r.few_exposure_bytes, &r.few_exposure_ms) {
        let name = bytes.tail().name();
        columns.push(always(format!("{LOST} {name}"), Cell::of(bytes.max(), Unit::Bytes)));
        columns.push(always(format!("{age} {name}"), Cell::plain(ms.max(), 0)));
    }
    columns
}

/// Which planted bugs as many cuts show.
pub fn shown(r: &ShownRow) -> Vec<Column> {
    let names = |all: &[String]| match all {
        [] => Cell::None,
        all => Cell::Text(all.join(", ")),
    };
    let figures = [
        ("as broken promises", &r.broken_promises),
        ("as damage", &r.damage),
        ("as stale data", &r.stale_bytes),
    ];
    let shown = r.planted - r.not_shown.len() as u64;
    let mut columns =
        vec![always("planted", Cell::count(r.planted)), always("shown", Cell::count(shown))];
    columns.extend(figures.map(|(how, all)| always(how, Cell::count(all.len() as u64))));
    columns.extend(figures.map(|(how, all)| wide(format!("{how}: names"), names(all))));
    columns.push(always("not shown", names(&r.not_shown)));
    columns
}

/// After how many of a control's cuts promises were broken: an alarm if after none, and there is a
/// cache that can lose something.
fn control(heading: &str, row: Option<&ControlRow>) -> Column {
    let cell = row.map(|control| {
        let why = if control.must_break { "" } else { " (no cache)" };
        Cell::Share(control.cuts_with_broken_promises, why)
    });
    let blind = row.is_some_and(ControlRow::is_blind);
    Column { blind, ..always(heading, cell.unwrap_or(Cell::None)) }
}

fn only_wide(column: Column) -> Column {
    Column { wide: true, ..column }
}

/// What cuts took from the measured run itself.
pub fn loss(r: &LossRow) -> Vec<Column> {
    // As much as there was: it says nothing of what a larger run would lose.
    let all = r.bytes.max() >= r.data_bytes as f64;
    let most = match all {
        true => Cell::Text(format!(">= {}: all", bytes(r.bytes.max()))),
        false => Cell::of(r.bytes.max(), Unit::Bytes),
    };
    let not_reached = || Cell::Text("not reached".into());
    let steady = |value: fn(&SteadyLoss) -> f64| {
        r.steady.as_ref().map_or_else(not_reached, |s| Cell::of(value(s), Unit::Bytes))
    };
    let steady_cuts = r.steady.as_ref().map_or(0, |s| s.bytes.n());
    vec![
        wide("data", Cell::of(r.data_bytes as f64, Unit::Bytes)),
        always("time with unsynced data, %", Cell::plain(r.unsynced_share * 100.0, 1)),
        always("cuts in it", Cell::Total(r.cuts)),
        always("distinct places", Cell::Places(r.damage)),
        wide("unsynced p50", Cell::of(r.unsynced_bytes.p50(), Unit::Bytes)),
        always("lost p50", Cell::of(r.bytes.p50(), Unit::Bytes)),
        always("lost, most", most),
        wide("lost, age ms, virtual clock, p50", Cell::plain(r.ms.p50(), 0)),
        always("lost, age ms, virtual clock, most", Cell::plain(r.ms.max(), 0)),
        wide("cuts in steady state", Cell::Total(steady_cuts)),
        always("steady state: lost p50", steady(|s| s.bytes.p50())),
        always("steady state: lost, most", steady(|s| s.bytes.max())),
        wide("damage, cuts", Cell::Rate(r.damage)),
    ]
}

/// What was found after recovery, and the recovery itself.
pub fn found(r: &RiskRow) -> Vec<Column> {
    let e2fsck = match r.e2fsck_checked {
        0 => "not run".into(),
        checked => format!("{} of {checked}", r.e2fsck_damage),
    };
    let mut columns = vec![
        zero(always("damage, cuts", Cell::Rate(r.damage))),
        always("manual repair, cuts", Cell::Rate(r.manual_repair)),
        wide("e2fsck -fn: damaged", Cell::Text(e2fsck)),
        wide("torn writes", Cell::count(r.torn_writes)),
        always("torn units", Cell::count(r.torn_units)),
        always("stale data exposed", Cell::of(r.stale_bytes as f64, Unit::Bytes)),
        wide("out of order", Cell::count(r.order_violations)),
        always("empty after rename", Cell::count(r.empty_after_rename)),
        wide("of them replacing", Cell::count(r.empty_after_replace)),
    ];
    let recovery = format!("recovery ms, {} clock,", r.recovery_clock.name());
    let [p50, tail, max] = percentiles(&recovery, &r.recovery_ms, Unit::Plain(1));
    columns.extend([Column { wide: false, ..p50 }, only_wide(tail), max]);
    columns
}

/// The speed under the workload of files. Each path and clock has columns of its own.
pub fn files(f: &FilesRow) -> Vec<Column> {
    let how = format!("{}, {} clock", f.path.name(), f.clock.name());
    let calls = Cell::Number(f.operations_per_s, Unit::Plain(0));
    let cut_clock = if f.path == Path::Kernel { "wall" } else { "virtual" };
    let cut_run = Cell::maybe(f.cut_run_operations_per_s, Unit::Plain(0));
    let mut columns = vec![always(format!("calls/s {how}"), calls)];
    if f.path.is_system_call() {
        let place = f.place.map(|(best, worst)| match best == worst {
            true => format!("{best}"),
            false => format!("{best} to {worst}"),
        });
        columns.push(always("place", place.map_or(Cell::None, Cell::Text)));
    }
    columns.extend([
        wide(format!("calls/s of the run that was cut, {cut_clock} clock"), cut_run),
        wide(format!("runs {how}"), Cell::count(f.operations_per_s.runs())),
        wide(format!("calls {how}"), Cell::count(f.operations)),
        wide(format!("fsyncs {how}"), Cell::count(f.fsyncs)),
    ]);
    let [p50, tail, max] = percentiles(&format!("fsync ms, {how},"), &f.fsync_ms, Unit::Plain(2));
    columns.extend([Column { wide: !f.path.is_system_call(), ..p50 }, only_wide(tail), max]);
    columns.push(wide(format!("run s {how}"), Cell::plain(f.elapsed_seconds, 1)));
    columns
}

/// How long a read took beside a writer.
pub fn reads(r: &ReadRow) -> Vec<Column> {
    let digits = match r.seconds.max() {
        s if s < 0.1 => 4,
        s if s < 1.0 => 2,
        _ => 1,
    };
    let [p50, tail, max] = percentiles("s", &r.seconds, Unit::Plain(digits));
    let [call_p50, call_tail, call_max] = percentiles("read(2) ms", &r.call_ms, Unit::Plain(2));
    vec![
        Column { wide: false, ..p50 },
        always("s, published", Cell::maybe(r.published_seconds, Unit::Plain(0))),
        tail,
        max,
        wide("trials", Cell::count(r.seconds.n())),
        always("idle s p50", Cell::plain(r.idle_seconds.p50(), digits.max(2))),
        always("times idle", Cell::of(r.times_idle, Unit::Times)),
        only_wide(call_p50),
        only_wide(call_tail),
        call_max,
        always("writer, MB/s", Cell::plain(r.written_kb_per_s / 1024.0, 1)),
    ]
}

/// The chart's data.
pub fn point(p: &Point) -> Vec<Column> {
    vec![
        always(p.speed_unit.clone(), Cell::Number(p.speed, Unit::Plain(0))),
        always(format!("lost {}", p.exposure_is), Cell::of(p.exposure_bytes, Unit::Bytes)),
        always(
            format!("lost, age ms, {} clock, {}", p.exposure_clock.name(), p.exposure_is),
            Cell::plain(p.exposure_ms, 0),
        ),
    ]
}
