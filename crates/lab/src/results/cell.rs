//! What stands in one place of a table: a figure with its unit, over the runs.

use super::{Rate, Spread};

/// What stands in one place of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing to print.
    None,
    /// Words.
    Text(String),
    /// A figure.
    Number(Spread, Unit),
    /// A count of all runs together, as events of a rate are.
    Total(u64),
    /// At how many different places of all runs was cut.
    Places(Rate),
    /// How many of the cuts, with the bound of the rate.
    Rate(Rate),
    /// How many of how many cuts, with a remark: of a control, which is to be above zero.
    Share(Rate, &'static str),
}

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// With so many decimals.
    Plain(usize),
    /// A ratio: `3.14x`.
    Times,
    /// A difference in per cent, signed.
    Difference,
    /// Bytes, with a binary unit.
    Bytes,
}

impl Unit {
    fn write(self, x: f64) -> String {
        match self {
            Unit::Plain(decimals) => format!("{x:.decimals$}"),
            Unit::Times => format!("{x:.2}x"),
            Unit::Difference => format!("{x:+.1} %"),
            Unit::Bytes => bytes(x),
        }
    }

    /// Its name, for figures without it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Plain(_) => "",
            Unit::Times => "times",
            Unit::Difference => "percent",
            Unit::Bytes => "bytes",
        }
    }
}

impl Cell {
    /// A count.
    pub fn count(n: u64) -> Cell {
        Cell::Number(Spread::of(&[n as f64]), Unit::Plain(0))
    }

    /// A figure with so many decimals.
    pub fn plain(x: f64, decimals: usize) -> Cell {
        Cell::of(x, Unit::Plain(decimals))
    }

    /// A figure.
    pub fn of(x: f64, unit: Unit) -> Cell {
        Cell::Number(Spread::of(&[x]), unit)
    }

    /// A figure that may not be there.
    pub(crate) fn maybe(x: Option<f64>, unit: Unit) -> Cell {
        x.map_or(Cell::None, |x| Cell::of(x, unit))
    }

    /// What several runs have in one place, as one: median and range of figures, the sum of rates
    /// and totals; of words, those that are the same in all.
    pub fn merged(cells: &[&Cell]) -> Cell {
        let mut there = cells.iter().copied().filter(|c| **c != Cell::None);
        let Some(first) = there.next() else { return Cell::None };
        match first {
            Cell::Number(_, unit) => {
                let spreads = cells.iter().filter_map(|c| match c {
                    Cell::Number(s, _) => Some(*s),
                    _ => None,
                });
                Cell::Number(Spread::over(&spreads.collect::<Vec<_>>()), *unit)
            }
            Cell::Total(n) => {
                let others = there.filter_map(|c| match c {
                    Cell::Total(n) => Some(*n),
                    _ => None,
                });
                Cell::Total(n + others.sum::<u64>())
            }
            Cell::Places(rate) => Cell::Places(sum(*rate, there)),
            Cell::Rate(rate) => Cell::Rate(sum(*rate, there)),
            Cell::Share(rate, why) => Cell::Share(sum(*rate, there), why),
            Cell::Text(text) if there.all(|c| c == first) => Cell::Text(text.clone()),
            Cell::Text(_) | Cell::None => Cell::Text("differs".into()),
        }
    }

    /// The figure, and what is said with it: its range or its bound.
    pub fn text(&self) -> (String, Option<String>) {
        match self {
            Cell::None => ("-".into(), None),
            Cell::Text(text) => (text.clone(), None),
            Cell::Number(s, unit) => {
                let value = unit.write(s.median());
                let (min, max) = (unit.write(s.min()), unit.write(s.max()));
                let range = (min != max).then(|| format!("{min}..{max}"));
                (value, range)
            }
            Cell::Total(n) => (n.to_string(), None),
            Cell::Places(rate) => (rate.places.to_string(), None),
            Cell::Rate(rate) => {
                let bound = format!("<={} %", two_digits(rate.at_most_percent()));
                (rate.events.to_string(), (rate.of > 0).then_some(bound))
            }
            Cell::Share(rate, why) => {
                let places = format!("{} places", rate.places);
                (format!("{} of {}{why}", rate.events, rate.of), Some(places))
            }
        }
    }

    /// Whether it is a number above zero.
    pub(crate) fn is_above_zero(&self) -> bool {
        match self {
            Cell::Number(s, _) => s.max() > 0.0,
            Cell::Total(n) => *n > 0,
            Cell::Places(rate) => rate.places > 0,
            Cell::Rate(rate) | Cell::Share(rate, _) => rate.events > 0,
            Cell::None | Cell::Text(_) => false,
        }
    }
}

/// A rate and those of further cells.
fn sum<'a>(first: Rate, others: impl Iterator<Item = &'a Cell>) -> Rate {
    let others = others.filter_map(|cell| match cell {
        Cell::Places(more) | Cell::Rate(more) | Cell::Share(more, _) => Some(*more),
        _ => None,
    });
    Rate::of_all(&std::iter::once(first).chain(others).collect::<Vec<_>>())
}

/// Per cent, with about two digits: 5.0, 0.75, 0.094, 32.
fn two_digits(percent: f64) -> String {
    match percent {
        p if p >= 10.0 => format!("{p:.0}"),
        p if p >= 1.0 => format!("{p:.1}"),
        p if p >= 0.1 => format!("{p:.2}"),
        p => format!("{p:.3}"),
    }
}

/// Bytes with a binary unit.
pub(crate) fn bytes(n: f64) -> String {
    match n {
        n if n >= 1024.0 * 1024.0 => format!("{:.1} MiB", n / 1024.0 / 1024.0),
        n if n >= 1024.0 => format!("{:.0} KiB", n / 1024.0),
        n => format!("{n:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_several_runs_are_printed_with_their_range() {
        let of = |x| Cell::of(x, Unit::Times);
        let (a, b, c) = (of(3.1), of(3.0), of(3.4));
        let text = |cell: Cell| cell.text();
        assert_eq!(text(a.clone()), ("3.10x".into(), None));
        let merged = Cell::merged(&[&a, &b, &Cell::None, &c]);
        assert_eq!(text(merged), ("3.10x".into(), Some("3.00x..3.40x".into())));
        // A range that cannot be seen is none.
        assert_eq!(text(Cell::merged(&[&of(3.0), &of(3.001)])), ("3.00x".into(), None));
        let rate = |events| Cell::Rate(Rate::new(events, 200));
        assert_eq!(text(rate(0)), ("0".into(), Some("<=1.5 %".into())));
        let both = Cell::merged(&[&rate(0), &rate(0)]);
        assert_eq!(text(both), ("0".into(), Some("<=0.75 %".into())));
        // What events are counted of is that of all runs too.
        let cuts = Cell::merged(&[&Cell::Total(200), &Cell::Total(200)]);
        assert_eq!(text(cuts), ("400".into(), None));
        let one_run = |places| Cell::Places(Rate { places, run: 7, ..Rate::new(0, 200) });
        assert_eq!(text(Cell::merged(&[&one_run(9), &one_run(11)])), ("11".into(), None));
        let control = |events| Cell::Share(Rate::new(events, 5), " (no cache)");
        let both = Cell::merged(&[&control(0), &control(1)]);
        assert_eq!(text(both), ("1 of 10 (no cache)".into(), Some("10 places".into())));
        let words = |w: &str| Cell::Text(w.into());
        assert_eq!(Cell::merged(&[&words("a"), &words("b")]), words("differs"));
        assert_eq!(Cell::merged(&[]), Cell::None);
    }
}
