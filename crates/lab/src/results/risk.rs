//! What power cuts took from a variant.

use serde::{Deserialize, Deserializer, Serialize};

use super::cell::{Cell, Unit};
use super::column::{Column, always, only_wide, percentiles, wide, zero};
use super::row::{Order, Row, RowContext, TableLine};
use super::seed::SeedResults;
use super::{ClockKind, FilesRow, Percentiles, Rate, SpeedRow, Spread};

/// What power cuts took from one variant: the figures that docs/risk.md defines.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RiskRow {
    /// Variant's name.
    pub variant: String,
    /// Cuts made.
    pub cuts: u64,
    /// At so many different places of the run: by what the devices held and what was in doubt.
    pub places: u64,
    /// Acknowledged-durable operations whose effect was missing, over all cuts.
    pub broken_promises: u64,
    /// Cuts with at least one broken promise.
    pub cuts_with_broken_promises: Rate,
    /// Control: the same run, cut as if the drive ignored every flush.
    pub control_flush_ignored: Option<ControlRow>,
    /// Control: the same run, cut as if the file system had never asked for a flush. On devices
    /// without a volatile cache nothing can come of it, and the zeros of such a variant say nothing
    /// about flushes.
    pub control_flushes_omitted: Option<ControlRow>,
    /// Bytes of acknowledged work that a cut took.
    pub exposure_bytes: Percentiles,
    /// Operations of acknowledged work that a cut took.
    pub exposure_operations: Percentiles,
    /// What the times of the run that was cut are of, `exposure_ms` too.
    pub run_clock: ClockKind,
    /// Milliseconds from the oldest acknowledged operation that was lost to the cut.
    pub exposure_ms: Percentiles,
    /// Write calls found half old, half new, over all cuts.
    pub torn_writes: u64,
    /// Units of 4096 bytes of one write call found half old, half new, over all cuts.
    pub torn_units: u64,
    /// Stale data exposed: bytes found in a file that were never written to it, over all cuts.
    pub stale_bytes: u64,
    /// Writes that survived where an earlier one in the same file did not, over all cuts.
    pub order_violations: u64,
    /// Empty after rename: names that a rename gave to a file whose data, written before it, is
    /// missing; over all cuts.
    pub empty_after_rename: u64,
    /// Those of them for which a file that was there before has gone.
    pub empty_after_replace: u64,
    /// Cuts after which the file system's structure was damaged or could not be mounted.
    pub damage: Rate,
    /// Cuts after which recovery needed manual repair.
    pub manual_repair: Rate,
    /// Cuts whose result e2fsck -fn judged too, and how many of these it did not call clean.
    pub e2fsck_checked: u64,
    /// See `e2fsck_checked`.
    pub e2fsck_damage: u64,
    /// What the time of the recovery is of.
    pub recovery_clock: ClockKind,
    /// Milliseconds from power on to mounted.
    pub recovery_ms: Percentiles,
    /// Of as many of these cuts as a variant of the kernel's has, if one stands beside it: bytes of
    /// acknowledged work that a cut took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub few_exposure_bytes: Option<Percentiles>,
    /// The same of its age, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub few_exposure_ms: Option<Percentiles>,
    /// A number for what the programs that were cut did, however far they got; not in `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<u64>,
    /// Of a replay, what of it is judged; not in `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<JudgedScope>,
    /// The first findings, in words.
    pub findings: Vec<String>,
    /// What could not be judged, if there is such; not in `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<NotJudged>,
}

/// What of a program's calls a cut can break, and what of it is looked at.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JudgedScope {
    /// Syncs, and writes that are durable when they return.
    pub promises: u64,
    /// Files that are not judged: of more than 64 MiB, or with a range that was taken out or put
    /// in.
    pub files_left_out: u64,
    /// Files that were synced, and the folder with their new name was not: a cut may take them
    /// whole, and no promise is broken.
    pub files_without_name: u64,
    /// No device has a volatile cache: what has returned from it is there, flushed or not.
    pub no_volatile_cache: bool,
}

impl RiskRow {
    /// Bytes of acknowledged work that a cut took, of as many cuts as the variants beside it have.
    pub(crate) fn comparable_bytes(&self) -> &Percentiles {
        self.few_exposure_bytes.as_ref().unwrap_or(&self.exposure_bytes)
    }

    /// The same of its age, in milliseconds.
    pub(crate) fn comparable_ms(&self) -> &Percentiles {
        self.few_exposure_ms.as_ref().unwrap_or(&self.exposure_ms)
    }
}

/// The age of what cuts took, cut by cut in the order of time.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgeSeries {
    /// Variant's name.
    pub variant: String,
    /// What both times are of.
    pub clock: ClockKind,
    /// When the cut was, in milliseconds from the beginning of the run.
    pub at_ms: Vec<u64>,
    /// Milliseconds from the oldest acknowledged operation that was lost to the cut; 0: none was.
    pub age_ms: Vec<u64>,
}

impl Row for AgeSeries {}

/// Cuts that could not be judged because something failed on this machine: no room for an image, a
/// program that did not end. This says nothing of the file system.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotJudged {
    /// Cuts of which nothing is known; they are not among the row's cuts.
    pub cuts: u64,
    /// Cuts that another program was to judge too, and could not.
    pub opinions: u64,
    /// Why, the first time.
    pub why: String,
}

/// A control of a variant: the same run without something that its promises stand on.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlRow {
    /// Cuts made.
    pub cuts: u64,
    /// As in [`RiskRow`].
    pub broken_promises: u64,
    /// Cuts with at least one.
    pub cuts_with_broken_promises: Rate,
    /// Whether promises must be broken: some device has a volatile cache.
    pub must_break: bool,
}

impl ControlRow {
    /// The control did not fail as it must: the zeros beside it prove nothing.
    pub fn is_blind(&self) -> bool {
        self.must_break && self.broken_promises == 0
    }
}

/// What was called kB/s was KiB/s.
fn binary_unit<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(String::deserialize(from)?.replace(", kB/s,", ", KiB/s,"))
}

/// A variant in the chart of speed against exposure.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Variant's name.
    pub variant: String,
    /// How fast.
    pub speed: Spread,
    /// Of what, in which unit: "calls/s, wall clock", "initial write, KiB/s, virtual clock".
    #[serde(deserialize_with = "binary_unit")]
    pub speed_unit: String,
    /// Bytes of acknowledged work that a cut took: the 99th percentile, or the greatest of few.
    pub exposure_bytes: f64,
    /// Its age in milliseconds, the same.
    pub exposure_ms: f64,
    /// Which of the two it is: "p99", "max of 60".
    pub exposure_is: String,
    /// What `exposure_ms` is of.
    pub exposure_clock: ClockKind,
}

/// The points of all variants that have a speed and were cut. The speed under IOzone is that of the
/// first test. Beside the kernel's variants the greatest loss of as many cuts as those have.
pub fn points(run: &SeedResults) -> Vec<Point> {
    let rows = || run.of::<SpeedRow>();
    let headline = rows().next().map_or("", |row| &row.test);
    run.of::<RiskRow>()
        .filter_map(|r| {
            // By system calls, where there is such a row: as the others are.
            let of_variant = run.of::<FilesRow>().filter(|f| f.variant == r.variant);
            let of_files = of_variant.max_by_key(|f| f.path);
            let of_test = rows().find(|row| row.variant == r.variant && row.test == headline);
            let (speed, speed_unit) = match (of_files, of_test) {
                (Some(f), _) => {
                    let unit = format!("calls/s {}, {} clock", f.path.name(), f.clock.name());
                    (f.operations_per_s, unit)
                }
                (None, Some(row)) => {
                    (Spread::of(&[row.kb_per_s]), format!("{headline}, KiB/s, virtual clock"))
                }
                (None, None) => return None,
            };
            let (bytes, ms) = (r.comparable_bytes().tail(), r.comparable_ms().tail());
            Some(Point {
                variant: r.variant.clone(),
                speed,
                speed_unit,
                exposure_bytes: bytes.value(),
                exposure_ms: ms.value(),
                exposure_is: bytes.name(),
                exposure_clock: r.run_clock,
            })
        })
        .collect()
}

/// All that had been acknowledged and was lost, without a promise about it: what is empty after a
/// rename is in it.
const LOST: &str = "acknowledged data lost (unsynced)";

impl Row for RiskRow {
    fn lines(&self, _results: &dyn RowContext) -> Vec<TableLine> {
        let line =
            |title: &str, columns| TableLine::new(Order::Risk, title, &self.variant, columns);
        vec![line("data loss", self.exposure()), line("after recovery", self.found())]
    }
}

impl RiskRow {
    /// What was promised and what was lost.
    fn exposure(&self) -> Vec<Column> {
        let mut columns = vec![
            always("cuts", Cell::Total(self.cuts)),
            always("distinct places", Cell::Places(self.cuts_with_broken_promises)),
            zero(wide("broken promises", Cell::count(self.broken_promises))),
            zero(always("cuts with broken promises", Cell::Rate(self.cuts_with_broken_promises))),
            control("control: drive ignores flush", self.control_flush_ignored.as_ref()),
            control("control: flushes omitted", self.control_flushes_omitted.as_ref()),
        ];
        columns.extend(percentiles(LOST, &self.exposure_bytes, Unit::Bytes));
        columns.extend(
            percentiles("calls lost", &self.exposure_operations, Unit::Plain(0)).map(only_wide),
        );
        // The kernel's is measured by the wall clock, ours by the simulation's: two columns.
        let age = format!("lost, age ms, {} clock,", self.run_clock.name());
        columns.extend(percentiles(&age, &self.exposure_ms, Unit::Plain(0)));
        // Beside the kernel's, which have fewer cuts: of as many of these.
        if let (Some(bytes), Some(ms)) = (&self.few_exposure_bytes, &self.few_exposure_ms) {
            let name = bytes.tail().name();
            columns.push(always(format!("{LOST} {name}"), Cell::of(bytes.max(), Unit::Bytes)));
            columns.push(always(format!("{age} {name}"), Cell::plain(ms.max(), 0)));
        }
        columns
    }

    /// What was found after recovery, and the recovery itself.
    fn found(&self) -> Vec<Column> {
        let e2fsck = match self.e2fsck_checked {
            0 => "not run".into(),
            checked => format!("{} of {checked}", self.e2fsck_damage),
        };
        let mut columns = vec![
            zero(always("damage, cuts", Cell::Rate(self.damage))),
            always("manual repair, cuts", Cell::Rate(self.manual_repair)),
            wide("e2fsck -fn: damaged", Cell::Text(e2fsck)),
            wide("torn writes", Cell::count(self.torn_writes)),
            always("torn units", Cell::count(self.torn_units)),
            always("stale data exposed", Cell::of(self.stale_bytes as f64, Unit::Bytes)),
            wide("out of order", Cell::count(self.order_violations)),
            always("empty after rename", Cell::count(self.empty_after_rename)),
            wide("of them replacing", Cell::count(self.empty_after_replace)),
        ];
        let recovery = format!("recovery ms, {} clock,", self.recovery_clock.name());
        let [p50, tail, max] = percentiles(&recovery, &self.recovery_ms, Unit::Plain(1));
        columns.extend([Column { wide: false, ..p50 }, only_wide(tail), max]);
        columns
    }
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

impl Row for Point {
    fn lines(&self, _results: &dyn RowContext) -> Vec<TableLine> {
        let columns = vec![
            always(self.speed_unit.clone(), Cell::Number(self.speed, Unit::Plain(0))),
            always(
                format!("lost {}", self.exposure_is),
                Cell::of(self.exposure_bytes, Unit::Bytes),
            ),
            always(
                format!("lost, age ms, {} clock, {}", self.exposure_clock.name(), self.exposure_is),
                Cell::plain(self.exposure_ms, 0),
            ),
        ];
        vec![TableLine::new(Order::Exposure, "speed and exposure", &self.variant, columns)]
    }
}
