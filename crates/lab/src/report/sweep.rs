//! The page of a sweep: how far it is, and a map of its cases, a square each.

use maud::html;
use steadfast_vfs::foreign::lines as harmless;

use super::matrix::{heat, span};
use super::page::{figures, whole};
use super::svg::{Drawing, Svg, compact};

/// Cases that are drawn, at most: a browser has to hold them.
pub const DRAWN_MAX: usize = 20_000;
/// Squares of a line, and how far one is from the next.
const LINE: usize = 60;
const STEP: f64 = 15.0;
const SIDE: f64 = 13.0;
/// What stands above the squares.
const HEADING: f64 = 42.0;

/// What came of a case, in one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseFigure {
    /// The figure.
    pub value: f64,
    /// What it is, with its unit last.
    pub what: &'static str,
    /// Somebody should look at it.
    pub alarm: bool,
}

/// How far a case is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MapState {
    /// It has not ended.
    Waiting,
    /// It could not be computed.
    Failed,
    /// It has ended.
    Ended(CaseFigure),
}

/// A case of the map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapCase {
    /// What distinguishes it from the others of its row.
    pub name: String,
    /// How far it is.
    pub state: MapState,
}

/// What a page of a sweep shows.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPage {
    /// Its heading.
    pub title: String,
    /// How far it is, in words.
    pub progress: String,
    /// What of it is to be known: alarming, or not.
    pub notes: Vec<(bool, String)>,
    /// The cases that go together, by their name.
    pub rows: Vec<(String, Vec<MapCase>)>,
    /// Cases that are too many to be drawn.
    pub left_out: u64,
}

const MAP: &str = "A square is a case: point at it to see which. Outlined: it has not ended. \
    Black: it could not be computed. Orange: something was found that should not be. Else, within \
    a row, darker is more, by the logarithm.";

impl SweepPage {
    /// The page: complete, it loads no other file.
    pub fn html(&self) -> String {
        let maps: Vec<Drawing> = self.rows.iter().map(|(name, cases)| map(name, cases)).collect();
        let body = html! {
            header {
                h1 { (self.title) }
                p { strong { (self.progress) } }
                @for (alarm, note) in &self.notes { p.note.bad[*alarm] { (note) } }
            }
            main {
                section { h2 { "The cases" } (figures(&maps, "", MAP))
                          @if self.left_out > 0 {
                              p.caption { "And " (self.left_out) " more, which are not drawn." }
                          } }
            }
        };
        harmless(&whole(&self.title, &body))
    }
}

/// The squares of a row, line by line.
fn map(name: &str, cases: &[MapCase]) -> Drawing {
    let ended = cases.iter().filter_map(|case| match case.state {
        MapState::Ended(figure) => Some(figure),
        MapState::Waiting | MapState::Failed => None,
    });
    let ended: Vec<CaseFigure> = ended.collect();
    let colours = span(ended.iter().map(|figure| figure.value));
    let what = ended.first().map_or("", |figure| figure.what);
    let least = ended.iter().map(|figure| figure.value).fold(f64::INFINITY, f64::min);
    let range = match colours {
        Some((_, most)) => format!("{what}: {} to {}", compact(least), compact(most)),
        None if ended.is_empty() => "none has ended".into(),
        None => format!("{what}: 0"),
    };
    let description = format!("{} of {} have ended; {range}", ended.len(), cases.len());
    let lines = cases.len().div_ceil(LINE);
    let width = STEP * LINE as f64;
    let mut svg = Svg::new(width, HEADING + STEP * lines as f64, name, &description);
    svg.heading(name);
    svg.text((0.0, 32.0), "dim", super::svg::Anchor::Start, &description);
    for (at, case) in cases.iter().enumerate() {
        let place = ((at % LINE) as f64 * STEP + 1.0, HEADING + (at / LINE) as f64 * STEP);
        let (class, said) = match case.state {
            MapState::Waiting => ("edge".to_owned(), "it has not ended".to_owned()),
            MapState::Failed => ("ink".to_owned(), "it could not be computed".to_owned()),
            MapState::Ended(CaseFigure { value, what, alarm }) => {
                // The faintest would look as if nothing were there.
                let heat = heat(value, colours).max(1);
                let class = if alarm { "c1".to_owned() } else { format!("h{heat}") };
                (class, format!("{what} {}", compact(value)))
            }
        };
        svg.rect(place, (SIDE, SIDE), &class, &format!("{}: {said}", case.name));
    }
    svg.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_a_square() {
        let ended =
            |value, alarm| MapState::Ended(CaseFigure { value, what: "wrong states", alarm });
        let states = [MapState::Waiting, MapState::Failed, ended(0.0, false), ended(8.0, true)];
        let case = |(n, state): (usize, MapState)| MapCase { name: format!("instant-{n}"), state };
        let cases: Vec<MapCase> = states.into_iter().enumerate().map(case).collect();
        let page = SweepPage {
            title: "A <sweep>".into(),
            progress: "4 of 5 cases".into(),
            notes: vec![(true, "one failed".into())],
            rows: vec![("crash-run".into(), cases)],
            left_out: 1,
        };
        let html = page.html();
        for part in [
            "A &lt;sweep&gt;",
            "<strong>4 of 5 cases</strong>",
            "class=\"note bad\">one failed",
            "<title>instant-0: it has not ended</title>",
            "<title>instant-1: it could not be computed</title>",
            "<title>instant-2: wrong states 0</title>",
            "class=\"c1\"><title>instant-3: wrong states 8</title>",
            "2 of 4 have ended; wrong states: 0 to 8",
            "And 1 more, which are not drawn.",
        ] {
            assert!(html.contains(part), "{part}\n{html}");
        }
    }
}
