//! Rows on a screen. What does not fit is left out by columns, the least important first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::view::{Row, View};
use steadfast_vfs::foreign::Foreign;

/// Columns that figures have.
struct Column {
    head: &'static str,
    width: usize,
    /// Shown where so many columns are.
    from: usize,
    figure: fn(&Row) -> String,
}

/// In the order in which they stand.
const COLUMNS: &[Column] = &[
    Column { head: "r/s", width: 6, from: 60, figure: |row| count(row.rates.reads) },
    Column { head: "w/s", width: 6, from: 60, figure: |row| count(row.rates.writes) },
    Column { head: "flush/s", width: 7, from: 100, figure: |row| count(row.rates.flushes) },
    Column { head: "read/s", width: 6, from: 30, figure: |row| bytes(row.rates.read_bytes) },
    Column { head: "write/s", width: 7, from: 30, figure: |row| bytes(row.rates.written_bytes) },
    Column { head: "queue", width: 5, from: 70, figure: |row| format!("{:.1}", row.rates.queue) },
    Column { head: "ms", width: 6, from: 50, figure: |row| milliseconds(row.rates.latency_ms) },
    Column { head: "dirty", width: 5, from: 70, figure: |row| regions(row.dirty) },
];

/// The narrowest a name gets, and the widest.
const NAME: std::ops::RangeInclusive<usize> = 8..=31;
/// Least columns of the state.
const STATE: usize = 10;

const KEYS: &str = "q quit  s sort  +/- interval  arrows scroll  ? columns";
/// What the columns are, a line each.
const EXPLAINED: &[&str] = &[
    "r/s w/s flush/s: requests a second; read/s write/s: bytes a second",
    "queue: requests being served, in the mean; ms: how long one took",
    "dirty: regions of a volume that are written to, or that a leg lacks",
];

/// A count a second: at most 6 columns.
fn count(rate: f64) -> String {
    match rate {
        r if r < 0.05 => "0".to_owned(),
        r if r < 100.0 => format!("{r:.1}"),
        r if r < 99_999.5 => format!("{r:.0}"),
        r if r < 9_999_500.0 => format!("{:.0}k", r / 1e3),
        r => format!("{:.0}M", r / 1e6),
    }
}

/// Bytes a second: at most 6 columns.
fn bytes(rate: f64) -> String {
    let (mut value, mut unit) = (rate, 0);
    while value >= 999.5 && unit < 5 {
        value /= 1024.0;
        unit += 1;
    }
    let name = ["", "K", "M", "G", "T", "P"][unit];
    match value {
        v if unit == 0 => format!("{v:.0}"),
        v if v < 99.95 => format!("{v:.1}{name}"),
        v => format!("{v:.0}{name}"),
    }
}

fn milliseconds(ms: Option<f64>) -> String {
    match ms {
        None => "-".to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.3}"),
        Some(ms) if ms < 1000.0 => format!("{ms:.1}"),
        Some(ms) => format!("{ms:.0}"),
    }
}

fn regions(dirty: Option<u64>) -> String {
    dirty.map_or("-".to_owned(), |n| if n > 99_999 { ">99k".to_owned() } else { n.to_string() })
}

/// Time since the host was started.
fn up(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days > 0 { format!("{days}d {clock}") } else { clock }
}

/// At most so many columns of a text.
fn cut(text: &str, columns: usize) -> String {
    match text.chars().count() > columns {
        true => {
            let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
            if columns > 0 { kept + "+" } else { kept }
        }
        false => text.to_owned(),
    }
}

/// How the columns of a screen are laid out.
struct Layout {
    name: usize,
    shown: Vec<&'static Column>,
    state: usize,
}

impl Layout {
    fn of(rows: &[Row], columns: usize) -> Layout {
        let shown: Vec<&Column> = COLUMNS.iter().filter(|c| columns >= c.from).collect();
        let figures: usize = shown.iter().map(|c| c.width + 1).sum();
        let left = columns.saturating_sub(figures);
        let longest = rows.iter().map(|row| row.name.chars().count() + indent(row));
        let longest = longest.max().unwrap_or(0).clamp(*NAME.start(), *NAME.end());
        let name = longest.min(left.saturating_sub(STATE + 1).max(*NAME.start())).min(left);
        let state = left.saturating_sub(name + 1);
        Layout { name, shown, state }
    }

    fn head(&self) -> String {
        let figures: String =
            self.shown.iter().map(|c| format!(" {:>width$}", c.head, width = c.width)).collect();
        let line = format!("{:<name$}{figures} state", "name", name = self.name);
        cut(&line, self.columns()).trim_end().to_owned()
    }

    fn columns(&self) -> usize {
        let figures: usize = self.shown.iter().map(|c| c.width + 1).sum();
        self.name + figures + 1 + self.state
    }

    fn line(&self, row: &Row) -> String {
        let name = cut(&format!("{}{}", " ".repeat(indent(row)), row.name), self.name);
        let figures: String = self
            .shown
            .iter()
            .map(|c| format!(" {:>width$}", (c.figure)(row), width = c.width))
            .collect();
        let state = cut(&row.state, self.state);
        format!("{name:<width$}{figures} {state}", width = self.name).trim_end().to_owned()
    }
}

fn indent(row: &Row) -> usize {
    if row.is_part { 2 } else { 0 }
}

fn title(view: &View) -> String {
    let stack = view.stack();
    let seconds = view.interval.as_secs_f64();
    let alarms = view.rows().iter().filter(|row| row.alarm && !row.is_part).count();
    let sound = match alarms {
        0 => "all whole".to_owned(),
        n => format!("{n} need attention"),
    };
    let (up, sort) = (up(stack.up_ns), view.sort.name());
    format!("host {}  up {up}  every {seconds} s  by {sort}  {sound}", stack.pid)
}

/// Rows that fit, beside the lines of title, heads and keys.
pub fn page(view: &View, lines: u16) -> usize {
    let around = 3 + if view.explains { EXPLAINED.len() } else { 0 };
    usize::from(lines).saturating_sub(around)
}

/// Everything on a screen of this size.
pub fn render(view: &View, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let rows = view.rows();
    let layout = Layout::of(&rows, columns);
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let inverse = Style::default().add_modifier(Modifier::REVERSED);
    let mut lines: Vec<(String, Style)> = vec![(cut(&title(view), columns), bold)];
    lines.push((layout.head(), inverse));
    let page = page(view, area.height);
    let last = rows.len().saturating_sub(page.max(1));
    for row in rows.iter().skip(view.scrolled.min(last)).take(page) {
        let style = if row.alarm { bold } else { Style::default() };
        lines.push((layout.line(row), style));
    }
    let mut foot: Vec<String> = Vec::new();
    if view.explains {
        foot.extend(EXPLAINED.iter().map(|line| (*line).to_owned()));
    }
    foot.push(match &view.problem {
        Some(problem) => format!("no answer: {}", Foreign::new(problem)),
        None => KEYS.to_owned(),
    });
    let below = usize::from(area.height).saturating_sub(foot.len()).max(lines.len());
    let placed = lines
        .into_iter()
        .enumerate()
        .chain(foot.into_iter().enumerate().map(|(n, line)| (below + n, (line, Style::default()))));
    for (at, (line, style)) in placed {
        let Some(y) = u16::try_from(at).ok().filter(|y| *y < area.height) else { continue };
        buffer.set_stringn(area.x, area.y + y, cut(&line, columns), columns, style);
        if style == inverse {
            let whole = Rect { x: area.x, y: area.y + y, width: area.width, height: 1 };
            buffer.set_style(whole, style);
        }
    }
}

/// A frame as text: as many lines as it needs, without keys.
pub fn text(view: &View, columns: u16) -> String {
    let rows = view.rows();
    let layout = Layout::of(&rows, usize::from(columns));
    let lines = [cut(&title(view), usize::from(columns)), layout.head()];
    let lines = lines.into_iter().chain(rows.iter().map(|row| layout.line(row)));
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
