//! The page: what was found first, then the charts, all figures, what was run and what is to be
//! known of it, and the command that reproduces it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::Drawing;
use super::{ages, latency, matrix, risk, sentences, speed, style, tables, waiting};
use crate::answer::answer;
use crate::results::{
    ClockKind, CopyRow, FilesRow, Note, RandomReadRow, ReadRow, Results, RiskRow, SpeedRow,
    VariantInfo, VariantTime,
};

/// A part of the page: its place for links, its heading, and what it holds.
struct Section {
    id: &'static str,
    heading: &'static str,
    body: Markup,
}

/// The whole page.
pub(super) fn page(results: &Results) -> String {
    let sections = sections(results);
    let body = html! {
        header {
            h1 { (results.title) }
            @for said in &answer(results).sentences {
                @if said.alarm { p.note.bad { (said.text) } } @else { p.said { (said.text) } }
            }
            p.caption { (what_it_is(results)) }
            nav aria-label="Contents" { ul {
                @for s in &sections { li { a href={ "#" (s.id) } { (s.heading) } } }
            } }
        }
        main {
            @for s in &sections { section id=(s.id) { h2 { (s.heading) } (s.body) } }
        }
    };
    whole(&results.title, &body)
}

/// A page with its head.
pub(crate) fn whole(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(style::POLICY);
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style::sheet())) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// What is to be known beside the figures.
pub(crate) fn notes(notes: &[Note]) -> Markup {
    html! {
        @for note in notes {
            p.note.bad[note.alarm] {
                @if note.alarm { strong { "Warning: " } }
                (note.text)
            }
        }
    }
}

fn what_it_is(results: &Results) -> String {
    let seeds = match &results.seeds[..] {
        [one] => format!("One run, seed {one}"),
        [first, .., last] => format!(
            "{} runs, seeds {first} to {last}: each figure is their median, the range stands with \
             it",
            results.seeds.len()
        ),
        [] => String::new(),
    };
    let benchmark = results.all::<SpeedRow>().next().is_some();
    let size = match (benchmark, results.full) {
        (false, _) => "",
        (true, true) => " At the published size.",
        (true, false) => " At a reduced size (--full runs the published one).",
    };
    let day = results.day.as_ref().map_or(String::new(), |day| format!(", on {day}"));
    format!("{seeds}.{size} By steadfast {}{day}.", results.program)
}

/// The parts that the results have figures for.
fn sections(results: &Results) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut add = |id, heading, charts: Vec<Drawing>, class: &str, caption: &str| {
        if !charts.is_empty() {
            let body = figures(&charts, class, caption);
            sections.push(Section { id, heading, body });
        }
    };
    let (heading, published) = match speed::has_published(results) {
        true => ("Speed, and the published figures", PUBLISHED),
        false => ("Speed", ""),
    };
    let caption = format!("Bars: measured, {}; {MEASURED}{published}", results.clock);
    add("speed", heading, speed::panels(results), "panels", &caption);
    add("files", "Speed", speed::of_files(results), "panels", FILES);
    add("peers", "Beside the kernel's file systems", speed::of_peers(results), "panels", PEERS);
    add("latency", "How long calls took", latency::panels(results), "panels", LATENCY);
    add("queue", "What waited in the queue", waiting::all(results), "panels", QUEUE);
    let risk = risk::against_speed(results).into_iter().chain(risk::exposure(results));
    add("risk", "Speed and data at risk", risk.collect(), "", RISK);
    add("ages", "How old what a cut took was", ages::all(results), "panels", AGES);
    if let Some(body) = matrix::all(results) {
        sections.push(Section { id: "sizes", heading: "Speed by file and record size", body });
    }
    if let Some(body) = sentences::all(results) {
        sections.push(Section { id: "said", heading: "What the source says", body });
    }
    sections.push(Section { id: "tables", heading: "All figures", body: tables::all(results) });
    let run = html! { (setup(results)) (notes(&results.notes)) };
    sections.push(Section { id: "run", heading: "What was run", body: run });
    if results.all::<RiskRow>().any(|r| !r.findings.is_empty()) {
        let body = findings(results);
        sections.push(Section { id: "findings", heading: "What cuts left", body });
    }
    sections.push(Section { id: "again", heading: "To reproduce it", body: reproduce(results) });
    sections
}

const MEASURED: &str = "the line across a bar's end is the range over the seeds.";
const PUBLISHED: &str = " The upright mark and the second figure: published.";
const FILES: &str = "Bars: the median of the runs; the line across a bar's end is their range. \
    Which of two is faster, 'place' says, where it can be said. By system calls: as a program has \
    it.";
const PEERS: &str = "Real time (wall clock) on the same modelled devices, by turns; the line \
    across a bar's end is the range of the runs. Sizes are smaller than above: compare bars with \
    each other only.";
const LATENCY: &str = "Both axes are logarithmic. A line that ends further right has slower worst \
    cases. Lines of three points are drawn through the median, the 99th percentile and the \
    slowest: of these runs nothing else was kept.";
const QUEUE: &str = "Requests in the scheduler's queue, of the first seed, all charts on one \
    scale: a reader waits behind what waits here.";
const RISK: &str = "Upper left is better: fast, and little at risk. The lines across a point are \
    the ranges over the runs. Acknowledged work is what \
    calls had returned from; what was promised (fsync, O_SYNC) is counted separately and must \
    never be lost (cuts with broken promises, below).";

const AGES: &str = "The oldest acknowledged call that each cut took, of the first seed, all charts \
    on one scale. Where a line rises as fast as the time, nothing had been written yet; where it \
    stays below a level, a timer of the file system writes what nobody has synced. The instants of \
    the cuts are drawn before anything is known of what they take.";

/// Charts with what is to be known of them.
pub(crate) fn figures(charts: &[Drawing], class: &str, caption: &str) -> Markup {
    html! {
        p.caption { (caption) }
        div class=(class) { @for chart in charts { figure { (PreEscaped(&chart.svg)) } } }
    }
}

fn setup(results: &Results) -> Markup {
    html! {
        p { "Workload: " code { (results.command) } }
        @if let Some(cut) = &results.risk_command {
            p { "Power cuts during: " code { (cut) } }
        }
        @if let Some(source) = &results.source { p { "Published figures: " (source) "." } }
        div.wide { table.words {
            thead { tr { th { "variant" } th { "what it is" } th { "time of the run" }
                         th { "mount" } th { "devices" } } }
            tbody { @for v in &results.variants { tr {
                th scope="row" { (v.name) }
                td { (v.label) }
                td data-of="time of the run" { (time_of(results, v)) }
                td data-of="mount" {
                     @if let Some(kernel) = &v.kernel { "Linux " (kernel) " " }
                     @if !v.mount.is_empty() { code { (v.mount) } } }
                td data-of="devices" { @for d in &v.devices { (d) br; } }
            } } }
        } }
    }
}

/// How long a variant's run was, by which clock; of several, the first seed's.
fn time_of(results: &Results, variant: &VariantInfo) -> String {
    let run = results.only();
    if let Some(took) = run.of::<VariantTime>().find(|t| t.variant == variant.name) {
        return format!("{:.1} s, virtual clock", took.virtual_seconds);
    }
    match run.of::<FilesRow>().find(|f| f.variant == variant.name) {
        Some(f) => format!("{:.1} s, {} clock", f.elapsed_seconds, f.clock.name()),
        None if results.clock == ClockKind::Wall => "wall clock".into(),
        None if results.peers.iter().any(|p| p.variant == variant.name) => "wall clock".into(),
        None if variant.kernel.is_some() => "left out".into(),
        None if is_measured(results, &variant.name) => "not kept".into(),
        None => "cut only".into(),
    }
}

/// Whether a speed of it was measured.
fn is_measured(results: &Results, variant: &str) -> bool {
    results.all::<RandomReadRow>().any(|row| row.variant == variant)
        || results.all::<CopyRow>().any(|row| row.variant == variant)
        || results.all::<ReadRow>().any(|row| row.variant == variant)
        || results.all::<SpeedRow>().any(|row| row.variant == variant)
}

fn findings(results: &Results) -> Markup {
    html! {
        @for run in &results.runs {
            @for r in run.of::<RiskRow>().filter(|r| !r.findings.is_empty()) {
                p { strong { (r.variant) } ", seed " (run.seed) ": first findings" }
                ul { @for f in &r.findings { li { (f) } } }
            }
        }
    }
}

fn reproduce(results: &Results) -> Markup {
    html! {
        pre { code { (super::reproduce(results)) } }
        p { "The same command with the same seeds gives the same figures, but for those of the \
             wall clock." }
    }
}
