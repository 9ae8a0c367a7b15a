//! What a run has found, in a few sentences made of its figures, and one table of the figures that
//! they use: what stands first. All tables have the rest.

mod loss;
mod published;
mod speed;
mod variants;

use crate::results::{Note, Results, SeedResults};
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
}

/// What a run has found.
pub fn answer(results: &Results) -> Answer {
    let mut sentences = alarms(results);
    sentences.extend(speed::sentences(results));
    sentences.extend(loss::sentences(results));
    sentences.extend(published::sentence(results));
    if results.runs.iter().all(SeedResults::is_empty) && !results.partial {
        sentences.push(Sentence::plain("Nothing was measured."));
    }
    Answer { sentences, table: variants::table(results) }
}

/// Alarms that are said; so many more are counted.
const ALARMS: usize = 3;

/// What must not be: it is among the notes.
fn alarms(results: &Results) -> Vec<Sentence> {
    let all: Vec<&Note> = results.notes.iter().filter(|note| note.alarm).collect();
    let alarm = |text: String| Sentence { text, alarm: true };
    let mut said: Vec<Sentence> =
        all.iter().take(ALARMS).map(|note| alarm(note.text.clone())).collect();
    if all.len() > said.len() {
        said.push(alarm(format!("And {} more of this kind: --wide.", all.len() - said.len())));
    }
    said
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
