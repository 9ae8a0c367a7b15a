//! The comparison for a terminal of 80 columns.

use super::StackComparison;
use super::columns::{COLUMNS, cells};
use crate::wrap::wrapped;

impl StackComparison {
    /// What was found, then a row for each stack, the fastest first.
    pub fn text(&self) -> String {
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
