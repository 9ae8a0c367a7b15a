//! What only a terminal sees: progress and colours. Nothing of it goes into a pipe or a file.

mod wrapped;

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
/// So many of a thing: `1 write`, `2 writes`.
pub use steadfast_crash::program::describe::counted;
/// A text of lines in which others have chosen words, as a terminal may have it.
pub use steadfast_vfs::foreign::lines as harmless;
use steadfast_vfs::foreign::{json, line};

use crate::output::is_unwritten;

pub use wrapped::WrappedOutput;

/// Prints an error with its causes to the standard error.
pub fn error(e: &anyhow::Error) {
    const HEAD: &str = "error:";
    let text = format!("{HEAD} {}", harmless(&with_causes(e)));
    if !std::io::stderr().is_terminal() {
        print(&text);
        return;
    }
    // What has lines of its own is laid out already.
    let text = if text.contains('\n') { text } else { hanging("", &text).trim_end().to_owned() };
    match std::env::var_os("NO_COLOR") {
        Some(_) => print(&text),
        None => {
            print(&format!("\x1b[1;31m{HEAD}\x1b[0m{}", text.strip_prefix(HEAD).unwrap_or(&text)))
        }
    }
}

/// An error and its causes, one after the other, without those that the text before already ends
/// with: many errors say their cause themselves.
pub fn with_causes(e: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in e.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Prints a remark to the standard error.
pub fn note(text: &str) {
    print(&harmless(text));
}

/// A line of the standard error, in one write. A CI takes a line that begins with two colons for
/// a command to itself (GitHub's workflow commands): what others have named does not begin one.
fn print(line: &str) {
    let mut lines = line.split('\n').enumerate().map(|(number, line)| {
        let is_command = number > 0 && line.trim_start().starts_with("::");
        if is_command { format!("| {line}") } else { line.to_owned() }
    });
    let first = lines.next().unwrap_or_default();
    let line = lines.fold(first, |text, line| text + "\n" + &line);
    // OK to ignore: there is nobody else to report it to, and the exit status says the rest.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// What an output consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Bytes that are printed as they are.
    Bytes,
    /// Lines of text.
    Text,
    /// One JSON document.
    Document,
}

/// An output in which a reader finds nothing to obey (`vfs::foreign`). What is written at once is
/// whole characters, but for [`Contents::Bytes`].
pub struct Harmless<W> {
    next: W,
    contents: Contents,
}

impl<W> Harmless<W> {
    /// Before `next`.
    pub fn new(next: W, contents: Contents) -> Self {
        Harmless { next, contents }
    }

    /// Text before `next`.
    pub fn text(next: W) -> Self {
        Harmless::new(next, Contents::Text)
    }
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if self.contents == Contents::Bytes || bytes.iter().all(is_plain) {
            self.next.write_all(bytes)?;
            return Ok(bytes.len());
        }
        if let (Contents::Document, Ok(text)) = (self.contents, std::str::from_utf8(bytes)) {
            self.next.write_all(json(text.to_owned()).as_bytes())?;
            return Ok(bytes.len());
        }
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\t')) {
            let (text, end) = match piece.split_last() {
                Some((b'\n' | b'\t', text)) => (text, &piece[text.len()..]),
                _ => (piece, &[][..]),
            };
            self.next.write_all(line(text).as_bytes())?;
            self.next.write_all(end)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.next.flush()
    }
}

/// An output whose reader may go away (`| head`), or whose disk may be full: what cannot be written
/// is thrown away, and the work goes on, because its exit status says what it found.
pub struct UntilClosed<W> {
    next: W,
    closed: bool,
}

impl<W> UntilClosed<W> {
    /// Before `next`.
    pub fn new(next: W) -> Self {
        UntilClosed { next, closed: false }
    }

    /// What is behind it, for whoever is to end with its reader.
    pub fn inner(&mut self) -> &mut W {
        &mut self.next
    }

    /// `instead` where nobody reads.
    fn or<T>(&mut self, done: std::io::Result<T>, instead: T) -> std::io::Result<T> {
        match done {
            // Of what could not be written otherwise `Output` keeps the error.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe || is_unwritten(&e) => {
                self.closed = true;
                Ok(instead)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let done = self.next.write(bytes);
        self.or(done, bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let done = self.next.flush();
        self.or(done, ())
    }
}

/// A text of several words after a heading, as lines of at most 79 columns; what does not fit goes
/// on below its beginning. Words are not broken.
pub fn hanging(head: &str, text: &str) -> String {
    const COLUMNS: usize = 79;
    let indent = head.chars().count();
    let (mut lines, mut column) = (head.to_owned(), indent);
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > indent {
            if column + 1 + width > COLUMNS {
                lines.push('\n');
                lines.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            } else {
                lines.push(' ');
                column += 1;
            }
        }
        lines.push_str(word);
        column += width;
    }
    lines.push('\n');
    lines
}

/// Where the standard error is no terminal, progress is printed so often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How often the progress of [`with_progress`] is brought up to date.
const SHOWN_EVERY: Duration = Duration::from_millis(250);

/// A progress bar of a thousand steps on the standard error; a line now and then where that is no
/// terminal.
pub struct Progress {
    bar: ProgressBar,
    last: Mutex<String>,
    /// When the last line was printed, or the work began; `None` with a bar.
    line: Mutex<Option<Instant>>,
    begun: Instant,
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
            // One line also in 80 columns: of a long message the beginning.
            ProgressStyle::with_template("{elapsed_precise} [{bar:20}] {percent:>3}% {wide_msg}");
        // OK to ignore a bad template: the default style shows the same figures.
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        let begun = Instant::now();
        let line = (!std::io::stderr().is_terminal()).then_some(begun);
        Progress { bar, last: Mutex::new(String::new()), line: Mutex::new(line), begun }
    }

    /// Shows that `share` (0 to 1) is done, and what is going on.
    pub fn set(&self, share: f64, what: &str) {
        self.bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *last != what {
            what.clone_into(&mut last);
            self.bar.set_message(harmless(what));
        }
        let mut line = self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if line.is_some_and(|printed| printed.elapsed() >= LINE_EVERY) {
            *line = Some(Instant::now());
            let percent = (share.clamp(0.0, 1.0) * 100.0) as u64;
            note(&format!("{} s: {percent} % done: {what}", self.begun.elapsed().as_secs()));
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Also where the work ends with an error.
        self.bar.finish_and_clear();
    }
}

/// Does `work`. If it takes longer than `silent`, the share that is done and what is going on are
/// shown meanwhile, for as long as there is `progress`.
pub fn with_progress<T>(
    silent: Duration,
    mut progress: impl FnMut() -> Option<(f64, String)> + Send,
    work: impl FnOnce() -> T,
) -> T {
    let (done, end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut pause, mut bar) = (silent, None);
            while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
                && let Some((share, what)) = progress()
            {
                bar.get_or_insert_with(Progress::start).set(share, &what);
                pause = SHOWN_EVERY;
            }
        });
        let worked = work();
        drop(done);
        worked
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_goes_on_below() {
        assert_eq!(hanging("UUID: ", "a b"), "UUID: a b\n");
        assert_eq!(hanging("Label: ", ""), "Label: \n");
        let words = vec!["feature"; 20].join(" ");
        let lines = hanging("Features: ", &words);
        assert_eq!(lines.split_whitespace().count(), 21);
        assert!(lines.lines().all(|l| l.len() < 80), "{lines}");
        assert!(lines.lines().skip(1).all(|l| l.starts_with("          f")), "{lines}");
    }

    #[test]
    fn a_cause_is_printed_once() {
        let lower = anyhow::anyhow!("no such file").context("a.img: cannot open it: no such file");
        assert_eq!(
            with_causes(&lower.context("mkfs")),
            "mkfs: a.img: cannot open it: no such file"
        );
        assert_eq!(with_causes(&anyhow::anyhow!("why").context("what")), "what: why");
    }

    /// Other errors are errors.
    #[test]
    fn what_nobody_reads_is_thrown_away() {
        struct Pipe(i32);
        impl Write for Pipe {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::from_raw_os_error(self.0))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                self.write(b"").map(drop)
            }
        }
        let (closed, full) = (rustix::io::Errno::PIPE, rustix::io::Errno::NOSPC);
        let mut out = UntilClosed::new(Pipe(closed.raw_os_error()));
        writeln!(out, "nobody").and_then(|()| out.flush()).unwrap();
        let mut out = UntilClosed::new(Pipe(full.raw_os_error()));
        assert!(writeln!(out, "text").is_err() && out.flush().is_err());
        let mut out = UntilClosed::new(Vec::new());
        writeln!(out, "text").unwrap();
        assert_eq!(out.next, b"text\n");
    }

    #[test]
    fn a_terminal_obeys_nobody_else() {
        let mut out = Vec::new();
        write!(Harmless::text(&mut out), "a\x1b]0;\n  b\t\u{9b}gr\u{fc}n\n").unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "a\\033]0;\n  b\t\\302\\233gr\u{fc}n\n");
        let mut out = Vec::new();
        Harmless::new(&mut out, Contents::Document).write_all("\"\u{9b}\"".as_bytes()).unwrap();
        Harmless::new(&mut out, Contents::Bytes).write_all(b"\x1b\xff").unwrap();
        assert_eq!(out, b"\"\\u009b\"\x1b\xff");
    }
}
