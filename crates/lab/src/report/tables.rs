//! The tables of the terminal, with all their columns, in parts that fit a page.

use maud::{Markup, html};

use crate::results::Results;
use crate::table::{Grid, Heading, Line, grids};

/// What a part may take, in pixels: a sheet of A4 and a window of 800 hold it.
const WIDTH: usize = 680;
/// Of a character, and of what is between two columns.
const CHARACTER: usize = 7;
const BETWEEN: usize = 17;

/// All tables.
pub(super) fn all(results: &Results) -> Markup {
    html! {
        @for grid in grids(results) {
            @let grid = grid.narrow(true);
            h3 { (grid.title) }
            @for columns in parts(&grid) { (part(&grid, columns)) }
        }
    }
}

/// Which columns stand together: as many as fit, one at least.
fn parts(grid: &Grid) -> Vec<std::ops::Range<usize>> {
    let names = grid.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let first = names.min(30) * CHARACTER + BETWEEN;
    let mut parts = Vec::new();
    let (mut begin, mut taken) = (0, first);
    for (i, heading) in grid.headings.iter().enumerate() {
        let wide = width(heading, &grid.lines, i) * CHARACTER + BETWEEN;
        if i > begin && taken + wide > WIDTH {
            parts.push(begin..i);
            (begin, taken) = (i, first);
        }
        taken += wide;
    }
    parts.push(begin..grid.headings.len());
    parts
}

/// Characters of a column: of its longest figure, and of the longest word above it.
fn width(heading: &Heading, lines: &[Line], column: usize) -> usize {
    let words = heading.text.split(' ').map(str::len);
    let figures = lines.iter().map(|line| {
        let (value, more) = line.cells[column].0.text();
        value.chars().count().max(more.map_or(0, |m| m.chars().count() + 2))
    });
    words.chain(figures).max().unwrap_or(0)
}

/// Some columns of a table. What must not be is marked, by more than its colour.
fn part(grid: &Grid, columns: std::ops::Range<usize>) -> Markup {
    html! {
        div.wide { table {
            thead { tr {
                th { span hidden { (grid.title) } }
                @for heading in &grid.headings[columns.clone()] {
                    th scope="col" { (heading.text) }
                }
            } }
            tbody { @for line in &grid.lines {
                tr {
                    th scope="row" { (line.name) }
                    @for (cell, alarm) in &line.cells[columns.clone()] {
                        @let (value, more) = cell.text();
                        td.bad[*alarm] {
                            @if *alarm { "! " }
                            (value)
                            @if let Some(more) = more { br; small { "(" (more) ")" } }
                        }
                    }
                }
            } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Cell;

    #[test]
    fn a_wide_table_is_printed_in_parts() {
        let headings: Vec<Heading> =
            (0..30).map(|i| Heading { text: format!("column {i}"), wide: false }).collect();
        let cells = headings.iter().map(|_| (Cell::count(123_456_789), false)).collect();
        let lines = vec![Line { name: "internal".into(), cells }];
        let grid = Grid { title: "t".into(), headings, lines };
        let parts = parts(&grid);
        assert!(parts.len() > 2, "{parts:?}");
        let all: Vec<usize> = parts.into_iter().flatten().collect();
        assert!(all.into_iter().eq(0..30), "each once, in order");
    }
}
