//! Lines that are folded to 80 columns as they are printed.

use std::io::Write;

use super::hanging;

/// A line with more columns is folded.
const COLUMNS: usize = 79;
/// A column of a table that begins farther right is none that what follows can stand below.
const HEAD_MAX: usize = 24;

/// An output whose lines are folded between words where they do not fit; what goes on stands below
/// the line's last column. Commands, which somebody may want to copy, stay as they are. What is
/// written is whole characters; the last line may lack its end.
pub struct WrappedOutput<W: Write> {
    out: W,
    line: Vec<u8>,
    /// A word of a command is in quotes that the line has not closed.
    in_quotes: bool,
}

impl<W: Write> WrappedOutput<W> {
    /// Lines for `out`.
    pub fn new(out: W) -> Self {
        WrappedOutput { out, line: Vec::new(), in_quotes: false }
    }

    fn end_line(&mut self) -> std::io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if !self.in_quotes && !is_command(line.trim_start()) {
            return self.out.write_all(folded(&line).as_bytes());
        }
        self.in_quotes = is_left_in_quotes(&line, self.in_quotes);
        self.out.write_all(format!("{line}\n").as_bytes())
    }
}

/// What somebody may want to copy.
fn is_command(text: &str) -> bool {
    text.starts_with("steadfast crash ") || text.starts_with("judged  ")
}

/// Whether a word is in single quotes at the end of a shell's line.
fn is_left_in_quotes(line: &str, mut is_in: bool) -> bool {
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => is_in = !is_in,
            // In quotes it is a character as any other.
            '\\' if !is_in => drop(chars.next()),
            _ => {}
        }
    }
    is_in
}

/// The line as it is printed, with its end.
fn folded(line: &str) -> String {
    let text = line.trim_start();
    if line.chars().count() <= COLUMNS {
        return format!("{line}\n");
    }
    let margin = line.len() - text.len();
    // Behind the last gap of two spaces or more near the beginning; else two columns to the right.
    let gaps = line.match_indices("  ").map(|(at, _)| line.len() - line[at..].trim_start().len());
    match gaps.filter(|at| (margin + 1..=HEAD_MAX).contains(at)).last() {
        Some(at) => hanging(&line[..at], &line[at..]),
        None => {
            let indent = " ".repeat(margin);
            let below = hanging(&format!("{indent}  "), text);
            // The first line begins where it began.
            format!("{indent}{}", &below[margin + 2..])
        }
    }
}

impl<W: Write> Write for WrappedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.split_last() {
                Some((b'\n', text)) => {
                    self.line.extend_from_slice(text);
                    self.end_line()?;
                }
                _ => self.line.extend_from_slice(piece),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Drop for WrappedOutput<W> {
    fn drop(&mut self) {
        // OK to ignore: a line without its end is the end of a failed output.
        if !self.line.is_empty() {
            let _ = self.end_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_below_their_column_and_commands_are_not() {
        let long = "word ".repeat(20);
        let long = long.trim_end();
        let command = format!("    steadfast crash show {long}");
        let mut out = Vec::new();
        let mut wrapped = WrappedOutput::new(&mut out);
        write!(wrapped, "short\n\n  0.021 s  {long}\n{long}\n{command}\n").unwrap();
        writeln!(wrapped, "note      {long}").unwrap();
        writeln!(wrapped, "judged    by '{long}'").unwrap();
        writeln!(wrapped, "judged    by 'a\n{long} {long}\nit'\\''s' {long}").unwrap();
        writeln!(wrapped, "  steadfast {long}").unwrap();
        write!(wrapped, "{}", "x".repeat(100)).unwrap();
        drop(wrapped);
        let words = |n| ["word"; 20][..n].join(" ");
        let expected = [
            "short".into(),
            String::new(),
            format!("  0.021 s  {}", words(13)),
            format!("           {}", words(7)),
            words(15),
            format!("  {}", words(5)),
            command,
            format!("note      {}", words(14)),
            format!("          {}", words(6)),
            format!("judged    by '{long}'"),
            "judged    by 'a".into(),
            format!("{long} {long}"),
            format!("it'\\''s' {long}"),
            format!("  steadfast {}", words(13)),
            format!("    {}", words(7)),
            "x".repeat(100),
        ];
        assert_eq!(String::from_utf8(out).unwrap(), expected.join("\n") + "\n");
    }
}
