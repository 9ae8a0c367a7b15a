//! The comparison for a terminal of 80 columns: the answer in a screen, or all of it.

use super::columns::{COLUMNS, cells};
use super::{StackComparison, StackRow};
use crate::answer::{AnswerLine, AnswerTable};
use crate::results::Note;
use crate::table::{Layout, screen};
use crate::wrap::wrapped;

/// Notes of what must not be that a screen has.
const ALARMS: usize = 2;
const REST: &str = "All stacks, figures and notes: --wide; a page: --report FILE.html";

impl StackComparison {
    /// What was found, and the table as far as both fit a screen: `more` is said as well.
    pub fn text(&self, notes: &[Note], more: Option<&str>) -> String {
        let alarms = notes.iter().filter(|note| note.alarm).map(|note| note.text.clone());
        let said = alarms.take(ALARMS).chain(self.answer()).chain(more.map(str::to_owned));
        let said: Vec<String> = said.collect();
        match self.rows.is_empty() {
            true => said.iter().map(|text| wrapped(text, 0)).collect(),
            false => screen(&said, &self.screen_table(), REST, Layout::default()),
        }
    }

    /// The columns that the sentences use. What the others are compared with is there, and what
    /// loses what was promised.
    fn screen_table(&self) -> AnswerTable {
        let price = self.has_prices().then(|| match &self.currency {
            Some(currency) => format!("price, {currency}"),
            None => "price".to_owned(),
        });
        let names = ["place", "seconds", "times as fast", "promises broken", "most lost"];
        let headings = names.iter().map(|name| (*name).to_owned()).chain(price.clone()).collect();
        let line = |row: &StackRow| {
            let [place, stack, seconds, times, _, _, broken, lost] = cells(row);
            let price = price.iter().map(|_| row.price.map_or("-".into(), |p| p.to_string()));
            let figures = [place, seconds, times, broken, lost].into_iter().chain(price);
            AnswerLine {
                variants: vec![stack],
                keep: row.is_first || row.broke(),
                figures: figures.map(|figure| (figure, false)).collect(),
            }
        };
        AnswerTable { title: "stack", headings, lines: self.rows.iter().map(line).collect() }
    }

    /// All that was found, then a row for each stack, the fastest first.
    pub fn wide_text(&self) -> String {
        let mut out = String::new();
        self.sentences().iter().for_each(|sentence| out.push_str(&wrapped(sentence, 0)));
        let price = self.has_prices().then(|| self.currency.as_deref().unwrap_or_default());
        let above = COLUMNS.map(|(above, _)| above.to_owned());
        let below = COLUMNS.map(|(_, below)| below.to_owned());
        if self.rows.is_empty() {
            return out;
        }
        out.push('\n');
        out.push_str(&line(&above, price));
        out.push_str(&line(&below, price.map(|_| "price")));
        for row in &self.rows {
            let price = price.map(|_| row.price.map_or("-".to_owned(), |price| price.to_string()));
            out.push_str(&line(&cells(row), price.as_deref()));
        }
        self.footnote().iter().for_each(|said| out.push_str(&format!("\n{}", wrapped(said, 0))));
        out
    }
}

/// A line of the table.
fn line(cells: &[String; 8], price: Option<&str>) -> String {
    let [place, stack, seconds, times, p50, p99, broken, lost] = cells;
    let first = format!("{place:<6}{stack:<21}{seconds:>9} {times:>7}");
    // With prices there is no room for both.
    let line = match price {
        None => format!("{first} {p50:>8} {p99:>8} {broken:>7} {lost:>8}"),
        Some(price) => format!("{first} {p99:>8} {broken:>7} {lost:>8} {price:>9}"),
    };
    format!("{}\n", line.trim_end())
}
