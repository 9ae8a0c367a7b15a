//! The comparison as a page for a browser: the answer, one picture of speed against loss, the
//! table, the run over time and how long syncs took on some of the stacks, and how it was found.

use maud::{Markup, html};
use steadfast_vfs::foreign::lines as harmless;

use super::columns::{COLUMNS, cells};
use super::{StackComparison, StackRow};
use crate::report;
use crate::report::plot::{Frame, Plot};
use crate::report::scale::Scale;
use crate::report::svg::Drawing;
use crate::results::{Results, bytes};

const PICTURE: &str = "Upper left is best: fast, and little taken. Up: how often the program's run \
    fits into the time that it takes on the first stack; both axes are logarithmic, and what takes \
    nothing is at the left end. The line across a mark is the range over the seeds. A name with ! \
    broke promises: what was synced was gone.";
const TIMELINE: &str = "Time is logarithmic. Where a line is flat the program waited, for the \
    stack or for itself.";
const LATENCY: &str = "Both axes are logarithmic. A line that ends further right has slower worst \
    cases.";

impl StackComparison {
    /// The page: complete, it loads no other file. `what` was compared; `results` are of the runs
    /// that were cut.
    pub fn page(&self, what: &str, results: &Results) -> String {
        let title = format!("{what} on {}", super::stacks(self.rows.len()));
        let found = self.sentences();
        let body = html! {
            header {
                h1 { (title) }
                @for (i, sentence) in found.iter().enumerate() {
                    p { @if i == 0 { strong { (sentence) } } @else { (sentence) } }
                }
            }
            main {
                @if let Some(picture) = self.picture() {
                    section { h2 { "Speed, and what a power cut takes" }
                              (report::figures(&[picture], "", PICTURE)) }
                }
                section { h2 { "The stacks" } (self.table()) }
                @let shown = self.shown();
                @if let Some(timeline) = report::timeline(results, &shown) {
                    section { h2 { "The program over time" }
                              (report::figures(&[timeline], "panels", TIMELINE)) }
                }
                @let syncs = report::syncs(results, &shown);
                @if !syncs.is_empty() {
                    section { h2 { "How long a sync takes" }
                              (report::figures(&syncs, "panels", LATENCY)) }
                }
                (report::notes(&results.notes))
                section { h2 { "How it was found" } (how(results)) }
            }
        };
        harmless(&report::whole_page(&title, &body))
    }

    /// Stacks whose lines can be told from each other: the first of the catalogue, the fastest, the
    /// fastest that kept what it promised, the slowest, and the warning.
    fn shown(&self) -> Vec<&str> {
        let of = |is: &dyn Fn(&StackRow) -> bool| self.rows.iter().find(|row| is(row));
        let all = [
            of(&|row| row.is_first),
            self.rows.first(),
            of(&|row| row.broken_promises == 0 && !row.is_control),
            self.rows.last(),
            of(&|row| row.is_control),
        ];
        let mut names: Vec<&str> = Vec::new();
        for row in all.into_iter().flatten() {
            if !names.contains(&row.stack.as_str()) {
                names.push(&row.stack);
            }
        }
        names
    }

    /// One mark a stack.
    fn picture(&self) -> Option<Drawing> {
        let rows: Vec<&StackRow> = self.rows.iter().filter(|row| row.cuts > 0).collect();
        let base = self.rows.iter().find(|row| row.is_first)?.seconds.median();
        let kib = |row: &StackRow| row.lost_bytes / 1024.0;
        let times = |seconds: f64| base / seconds;
        let all = || rows.iter().flat_map(|row| [row.seconds.min(), row.seconds.max()]).map(times);
        let names: Vec<String> = rows
            .iter()
            .map(|row| format!("{}{}", row.stack, if row.broken_promises > 0 { " !" } else { "" }))
            .collect();
        let tooltip = |row: &&StackRow| {
            format!(
                "{}: {:.3} s, {} of what was not promised, {} broken promises",
                row.label,
                row.seconds.median(),
                bytes(row.lost_bytes),
                row.broken_promises
            )
        };
        let tooltips: Vec<String> = rows.iter().map(tooltip).collect();
        let mut plot = Plot::new(Frame {
            title: "speed against loss",
            description: &tooltips.join("; "),
            x: (
                Scale::of(true, rows.iter().map(|row| kib(row))),
                "KiB that a cut takes at most of what was not promised",
            ),
            y: (Scale::of(true, all()), "times as fast as the first stack"),
            legend: (&[], false),
            width: 560.0,
            height: 420.0,
            right: 130.0,
        });
        for row in &rows {
            plot.upright_range(kib(row), (times(row.seconds.max()), times(row.seconds.min())));
        }
        let points: Vec<(f64, f64)> =
            rows.iter().map(|row| (kib(row), times(row.seconds.median()))).collect();
        let labels: Vec<(&str, String)> = names.iter().map(String::as_str).zip(tooltips).collect();
        plot.labelled(&points, &labels);
        (!rows.is_empty()).then(|| plot.end())
    }

    fn table(&self) -> Markup {
        let has_prices = self.has_prices();
        html! {
            div.wide { table {
                thead { tr {
                    @for (above, below) in COLUMNS { th scope="col" { (above) " " (below) } }
                    @if has_prices {
                        th scope="col" { "price " (self.currency.as_deref().unwrap_or_default()) }
                    }
                } }
                tbody { @for row in &self.rows { tr {
                    @let [place, stack, rest @ ..] = cells(row);
                    td { (place) }
                    th scope="row" { strong { (stack) } br; small { (row.label) } }
                    @for (i, cell) in rest.iter().enumerate() {
                        // Of the promises.
                        @let broke = i == 4 && row.broken_promises > 0;
                        td.bad[broke] { @if broke { "! " } (cell) }
                    }
                    @if has_prices {
                        td { (row.price.map_or("-".to_owned(), |price| price.to_string())) }
                    }
                } } }
            } }
        }
    }
}

fn how(results: &Results) -> Markup {
    html! {
        p { "On each stack, a model in virtual time, were made " (results.command) ". The power \
             was cut in the run with the first seed; each cut's figures are of what was left after \
             recovery. By steadfast " (results.program) "." }
        div.wide { table.words {
            thead { tr { th { "stack" } th { "devices" } th { "mount" } } }
            tbody { @for v in &results.variants { tr {
                th scope="row" { (v.name) }
                td { @for device in &v.devices { (device) br; } }
                td { @if !v.mount.is_empty() { code { (v.mount) } } }
            } } }
        } }
    }
}
