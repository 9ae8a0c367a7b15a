//! The comparison as a page for a browser: the answer, one picture of speed against loss, the
//! table, the run over time and how long syncs took on some of the stacks, and how it was found.

use maud::{Markup, html};
use steadfast_vfs::foreign::lines as harmless;

use super::columns::{COLUMNS, cells};
use super::{Loss, StackComparison, StackRow};
use crate::report;
use crate::report::plot::{Frame, Plot};
use crate::report::scale::Scale;
use crate::report::svg::Drawing;
use crate::results::{Results, bytes};

const PICTURE: &str = "Upper left is best: fast, and little taken. Up: how often the program's run \
    fits into the time that it takes on the first stack; both axes are logarithmic, and what takes \
    nothing is at the left end. A cut takes of calls that had returned; of a disk that ignores \
    flushes also what was synced. It is the most that was found: more cuts find more. The line \
    across a mark is the range over the seeds. A name with ! broke promises: what was synced was \
    gone.";
const TIMELINE: &str = "Time is logarithmic. Where a line is flat the program waited, for the \
    stack or for itself.";
const LATENCY: &str = "Both axes are logarithmic. A line that ends further right has slower worst \
    cases.";

impl StackComparison {
    /// The page: complete, it loads no other file. `what` was compared; `results` are of the runs
    /// that were cut.
    pub fn page(&self, what: &str, results: &Results) -> String {
        let title = format!("{what} on {}", super::sentences::stacks(self.rows.len()));
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
                section { h2 { "The stacks" } (self.table())
                          @if let Some(said) = self.footnote() { p.caption { (said) } } }
                @let shown = self.shown();
                @let timeline = report::timeline(results, &shown);
                @if !timeline.is_empty() {
                    section { h2 { "The program over time" }
                              (report::figures(&timeline, "panels", TIMELINE)) }
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
            of(&|row| !row.broke() && !row.is_control),
            self.rows.iter().rev().find(|row| !row.is_control),
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
        let cut: Vec<(&StackRow, &Loss)> =
            self.rows.iter().filter_map(|row| Some((row, row.loss.as_ref()?))).collect();
        let rows = || cut.iter().map(|(row, _)| *row);
        let base = self.rows.iter().find(|row| row.is_first)?.seconds.median();
        let kib: Vec<f64> = cut.iter().map(|(_, loss)| loss.lost_bytes / 1024.0).collect();
        let times = |seconds: f64| base / seconds;
        let all = || rows().flat_map(|row| [row.seconds.min(), row.seconds.max()]).map(times);
        let names: Vec<String> = rows()
            .map(|row| format!("{}{}", row.stack, if row.broke() { " !" } else { "" }))
            .collect();
        let tooltip = |(row, loss): &(&StackRow, &Loss)| {
            format!(
                "{}: {:.3} s, at most {} lost, {} broken promises",
                row.label,
                row.seconds.median(),
                bytes(loss.lost_bytes),
                loss.broken_promises
            )
        };
        let tooltips: Vec<String> = cut.iter().map(tooltip).collect();
        let mut plot = Plot::new(Frame {
            title: "speed against loss",
            description: &tooltips.join("; "),
            x: (Scale::of(true, kib.iter().copied()), "most KiB of returned calls that a cut took"),
            y: (Scale::of(true, all()), "times as fast as the first stack"),
            legend: (&[], false),
            width: 560.0,
            height: 420.0,
            right: 130.0,
        });
        for (row, kib) in rows().zip(&kib) {
            plot.upright_range(*kib, (times(row.seconds.max()), times(row.seconds.min())));
        }
        let points: Vec<(f64, f64)> =
            kib.iter().copied().zip(rows().map(|row| times(row.seconds.median()))).collect();
        let labels: Vec<(&str, String)> = names.iter().map(String::as_str).zip(tooltips).collect();
        plot.labelled(&points, &labels);
        (!cut.is_empty()).then(|| plot.end())
    }

    fn table(&self) -> Markup {
        let has_prices = self.has_prices();
        html! {
            div.wide tabindex="0" { table.stacks {
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
                        @let broke = i == 4 && row.broke();
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
             was cut in the run with the first seed, from its start to the program's end: half of \
             the cuts over the time, pauses too, half over what happened, the last one at the end. \
             What is at risk after the end is in no figure. Each cut's figures are of what was \
             left after recovery. By steadfast " (results.program) "." }
        div.wide { table.words {
            thead { tr { th { "stack" } th { "devices" } th { "mount" } } }
            tbody { @for v in &results.variants { tr {
                th scope="row" { (v.name) }
                td data-of="devices" { @for device in &v.devices { (device) br; } }
                td data-of="mount" { @if !v.mount.is_empty() { code { (v.mount) } } }
            } } }
        } }
    }
}
