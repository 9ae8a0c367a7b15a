//! Text that fits a terminal.

/// Lines of at most 78 columns, indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column == 0 || column + 1 + width > 78 {
            if column > 0 {
                lines.push('\n');
            }
            lines.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += width;
    }
    lines.push('\n');
    lines
}
