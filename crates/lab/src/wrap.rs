//! Text that fits a terminal.

pub(crate) use steadfast_setup::form::lines;

/// Lines of at most 78 columns, indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let space = " ".repeat(indent);
    lines(text, 78 - indent).iter().map(|line| format!("{space}{line}\n")).collect()
}
