//! Text that fits a terminal.

/// Words in lines of at most `width` characters, or of one word.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// Lines of at most 78 columns, indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let space = " ".repeat(indent);
    lines(text, 78 - indent).iter().map(|line| format!("{space}{line}\n")).collect()
}
