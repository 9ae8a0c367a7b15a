//! What only a terminal sees: progress and colours. Nothing of it goes into a pipe or a file.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::tree::shown;

/// Prints an error with its causes to the standard error.
#[allow(clippy::print_stderr, reason = "the command line is the one place that prints")]
pub fn error(e: &anyhow::Error) {
    let head = if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        "\x1b[1;31merror:\x1b[0m"
    } else {
        "error:"
    };
    eprintln!("{head} {}", harmless(&format!("{e:#}")));
}

/// Prints a remark to the standard error.
#[allow(clippy::print_stderr, reason = "the command line is the one place that prints")]
pub fn note(text: &str) {
    eprintln!("{}", harmless(text));
}

/// A text whose control characters a terminal will not obey: names of files and processes, and
/// what a mount answers, may be anybody's. Ends of lines and tabs stay.
fn harmless(text: &str) -> String {
    let pieces = text.split_inclusive(['\n', '\t']).map(|piece| {
        let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
        shown(&piece.as_bytes()[..end]) + &piece[end..]
    });
    pieces.collect()
}

/// A progress bar of a thousand steps on the standard error; silent when that is no terminal.
pub struct Progress {
    bar: ProgressBar,
    last: Mutex<String>,
}

impl Progress {
    /// Starts the bar.
    pub fn start() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        let style =
            ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {percent:>3}% {msg}");
        // OK to ignore a bad template: the default style shows the same figures.
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, last: Mutex::new(String::new()) }
    }

    /// Shows that `share` (0 to 1) is done, and what is going on.
    pub fn set(&self, share: f64, what: &str) {
        self.bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *last != what {
            what.clone_into(&mut last);
            self.bar.set_message(what.to_owned());
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nobody_else() {
        assert_eq!(harmless("a\n  b\tgr\u{fc}n\n"), "a\n  b\tgr\u{fc}n\n");
        assert_eq!(harmless("(\x1b[31mE)\r\n\u{9b}"), "(\\033[31mE)\\015\n\\302\\233");
        assert_eq!(harmless(""), "");
    }
}
