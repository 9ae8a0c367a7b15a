//! What is wrong with a file: every mistake with its place, shown in the file's own text.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use steadfast_vfs::options::{choose, closest};

/// Columns that a message takes at most.
const COLUMNS: usize = 78;
/// Mistakes that are shown of one file, at most.
const SHOWN_MAX: usize = 20;
/// What begins a line of every scenario.
const TABLES: [&str; 4] = ["[workload", "[device.", "[[variant]]", "[machine]"];

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Where, in bytes of the text.
    pub at: Range<usize>,
    /// What is wrong, in one line.
    pub what: String,
    /// What to do, or what there is; empty: nothing to say.
    pub help: String,
}

/// A file that cannot be used, with all its mistakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongFile {
    /// The file's name, or an embedded scenario's.
    pub origin: String,
    /// The file's text.
    pub text: String,
    /// The mistakes, in the order of the text.
    pub wrongs: Vec<Wrong>,
    /// What it is said to be where it seems to be another kind of file; empty: nothing.
    pub another: &'static str,
}

impl WrongFile {
    /// With the mistakes in the order of the text; one that was found twice is reported once.
    pub fn new(
        origin: &str,
        text: &str,
        mut wrongs: Vec<Wrong>,
        another: &'static str,
    ) -> WrongFile {
        wrongs.sort_by_key(|w| (w.at.start, w.at.end));
        wrongs.dedup();
        WrongFile { origin: origin.into(), text: text.into(), wrongs, another }
    }

    /// The first line of the message.
    pub fn head(&self) -> String {
        let n = self.wrongs.len();
        if self.is_another() {
            return format!("{} {}", self.origin, self.another);
        }
        format!(
            "{} cannot be used: {n} {}",
            self.origin,
            if n == 1 { "mistake" } else { "mistakes" }
        )
    }

    /// The first mistakes, each with its line and a mark below it, and how many more there are.
    pub fn shown(&self) -> String {
        let renderer = Renderer::plain().term_width(COLUMNS);
        let one = |wrong: &Wrong| renderer.render(&[self.group(wrong)]).to_string();
        let most = if self.is_another() { 0 } else { SHOWN_MAX };
        let mut shown: Vec<String> = self.wrongs.iter().take(most).map(one).collect();
        let more = self.wrongs.len() - shown.len();
        if more > 0 && most > 0 {
            shown.push(format!("... and {more} more"));
        }
        shown.join("\n\n")
    }

    /// Whether it is not one with mistakes, but another kind of file.
    fn is_another(&self) -> bool {
        let begins = |line: &str| TABLES.iter().any(|table| line.trim_start().starts_with(table));
        let is_many = self.wrongs.len() > SHOWN_MAX;
        is_many && !self.another.is_empty() && !self.text.lines().any(begins)
    }

    fn group<'a>(&'a self, wrong: &'a Wrong) -> Group<'a> {
        let end = wrong.at.end.min(self.text.len());
        let at = wrong.at.start.min(end)..end;
        let place = Snippet::source(self.text.as_str())
            .path(self.origin.as_str())
            .annotation(AnnotationKind::Primary.span(at));
        let beside = |said: &str, text: &str| lines(text, COLUMNS - said.len()).join("\n");
        let group = Level::ERROR.primary_title(beside("error: ", &wrong.what)).element(place);
        match wrong.help.as_str() {
            "" => group,
            help => group.element(Level::HELP.message(beside("   = help: ", help))),
        }
    }
}

impl std::fmt::Display for WrongFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.shown() {
            shown if shown.is_empty() => f.write_str(&self.head()),
            shown => write!(f, "{}\n\n{shown}", self.head()),
        }
    }
}

/// Words in lines of at most `width` characters, or of one word.
pub fn lines(text: &str, width: usize) -> Vec<String> {
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

/// The word that comes nearest to an unknown one, as a question; else all that there are.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match closest(given, known.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None if known.is_empty() => String::new(),
        None => choose(known),
    }
}
