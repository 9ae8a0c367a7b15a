//! What a run has found, in a few sentences made of its figures, and one table of the figures that
//! they use: what stands first. All tables have the rest.

mod loss;
mod published;
mod speed;
mod variants;

use crate::results::Results;
pub use variants::{AnswerLine, AnswerTable};

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What is most important first. Who must know that something is wrong finds it here.
    pub sentences: Vec<Sentence>,
    /// The variants, with the figures that the sentences are of; `None`: there are none.
    pub table: Option<AnswerTable>,
}

/// A sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// In words.
    pub text: String,
    /// It must not be so.
    pub alarm: bool,
}

impl Sentence {
    fn plain(text: impl Into<String>) -> Sentence {
        Sentence { text: text.into(), alarm: false }
    }

    fn alarm(text: impl Into<String>) -> Sentence {
        Sentence { text: text.into(), alarm: true }
    }
}

/// What a run has found.
pub fn answer(results: &Results) -> Answer {
    let failed = results.failures.iter().map(|f| {
        Sentence::alarm(format!("FAILED: {}: {}.", f.variant, f.what.trim_end_matches('.')))
    });
    let mut sentences: Vec<Sentence> = failed.collect();
    sentences.extend(loss::broken(results));
    sentences.extend(speed::sentences(results));
    sentences.extend(loss::sentences(results));
    sentences.extend(published::sentence(results));
    if sentences.is_empty() {
        let ended = if results.partial {
            "It was stopped before any part had ended"
        } else {
            "Nothing was measured"
        };
        sentences.push(Sentence::plain(format!("{ended}.")));
    }
    Answer { sentences, table: variants::table(results) }
}

/// `'a', 'b' and 'c'`, at most so many of them: `'a', 'b' and 4 more`.
fn names(all: &[&str], most: usize) -> String {
    let shown = if all.len() > most { &all[..most - 1] } else { all };
    let mut words: Vec<String> = shown.iter().map(|name| format!("'{name}'")).collect();
    if shown.len() < all.len() {
        words.push(format!("{} more", all.len() - shown.len()));
    }
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        Some((only, _)) => only.clone(),
        None => String::new(),
    }
}

/// One word for one, another for more.
fn verb(n: usize, one: &'static str, more: &'static str) -> &'static str {
    if n == 1 { one } else { more }
}
