//! Annotations of a GitHub workflow: lines on its log that GitHub shows beside the change.

use std::io::{self, Write};

use anyhow::Result;
use uuid::Uuid;

use super::findings::CallPlace;
use super::results::Results;

/// Prints a line for each finding, and for what else a reader of the log must know.
///
/// # Errors
/// The output's.
pub fn print(results: &Results<'_>, out: &mut dyn Write) -> io::Result<()> {
    for finding in results.findings {
        let (level, title) = match finding.known {
            true => ("notice", format!("power cut, known: {}", finding.title)),
            false => ("error", format!("power cut: {}", finding.title)),
        };
        let mut message = finding.message();
        for show in finding.show.iter().chain(finding.also.iter().flat_map(|also| &also.show)) {
            message = format!("{message}\n{show}");
        }
        let source = finding.call.as_ref().and_then(CallPlace::source);
        let source = source.as_ref().map(|(file, line)| (file.as_str(), Some(*line)));
        let place = source.or(results.file.as_deref().map(|file| (file, None)));
        writeln!(out, "{}", line(level, place, &title, &message))?;
    }
    for what in results.fixed() {
        writeln!(out, "{}", line("notice", None, "power cut: baseline", &what))?;
    }
    for left in &results.left {
        writeln!(out, "{}", line("warning", None, "power cut: not explored", left))?;
    }
    Ok(())
}

/// Prints a report in which GitHub looks for no commands: names and what a judge says are
/// anybody's, and a line may begin with them. Nobody guesses the word that ends this.
///
/// # Errors
/// The output's, and those of `report`.
pub fn without_commands(
    out: &mut dyn Write,
    report: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let word = Uuid::new_v4();
    writeln!(out, "::stop-commands::{word}")?;
    report(out)?;
    Ok(writeln!(out, "::{word}::")?)
}

fn line(level: &str, place: Option<(&str, Option<u32>)>, title: &str, message: &str) -> String {
    let file = place.map(|(file, _)| format!("file={},", property(file))).unwrap_or_default();
    let line = place.and_then(|(_, line)| line).map(|line| format!("line={line},"));
    let line = line.unwrap_or_default();
    format!("::{level} {file}{line}title={}::{}", property(title), data(message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_github_would_read_is_escaped() {
        let line =
            line("error", Some(("a,b:c", Some(7))), "100 %: x::y", "one\r\n::error::two, 5 %");
        let expected = "::error file=a%2Cb%3Ac,line=7,title=100 %25%3A x%3A%3Ay::\
                        one%0D%0A::error::two, 5 %25";
        assert_eq!(line, expected);
    }
}
