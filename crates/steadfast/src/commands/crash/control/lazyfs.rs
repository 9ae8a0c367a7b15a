//! The words of LazyFS (github.com/dsrhaslab/lazyfs), which it reads from a FIFO: those that have a
//! meaning here, and of the others why they have none.
//!
//! LazyFS loses what is unsynced under the running program, or ends with it. Here the program goes
//! on, and the cut is made in the recording, with every state that it may leave.

use super::words::ControlWord;
use crate::Usage;

/// What takes the place of those that are refused.
const REFUSED: [(&str, &str); 5] = [
    ("crash", "cuts are made around every call; where one matters, say 'cut'"),
    ("torn-op", "every state tears writes already, by sectors and pages"),
    ("torn-seq", "every state loses some of several writes already"),
    (
        "display-cache-usage",
        "there is no cache of a fixed size; ask for lazyfs::unsynced-data-report",
    ),
    ("help", "see docs/control.md"),
];

/// A word of LazyFS, without its `lazyfs::`.
pub fn word(text: &str) -> Result<ControlWord, Usage> {
    let (name, parameters) = text.split_once("::").unwrap_or((text, ""));
    let word = match name {
        "clear-cache" => ControlWord::Cut,
        "cache-checkpoint" => ControlWord::Checkpoint,
        "unsynced-data-report" => ControlWord::Unsynced,
        _ => {
            let known = REFUSED.iter().find(|(refused, _)| *refused == name);
            let why = known.map_or("no word that LazyFS is known to have", |(_, why)| *why);
            let name: String = name.chars().take(40).flat_map(char::escape_debug).collect();
            usage!("lazyfs::{name} is not understood here: {why}");
        }
    };
    match parameters.is_empty() {
        true => Ok(word),
        false => usage!("lazyfs::{name} takes no parameters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_its_meaning_or_a_reason() {
        assert_eq!(word("clear-cache").unwrap(), ControlWord::Cut);
        assert_eq!(word("cache-checkpoint").unwrap(), ControlWord::Checkpoint);
        assert_eq!(word("unsynced-data-report").unwrap(), ControlWord::Unsynced);
        for refused in ["crash::timing=after::op=fsync::from_rgx=x", "torn-op::file=f", "help", "?"]
        {
            let said = word(refused).unwrap_err().to_string();
            let name = refused.split("::").next().unwrap();
            assert!(said.starts_with(&format!("lazyfs::{name} is not understood")), "{said}");
        }
        assert!(word("clear-cache::now").unwrap_err().0.contains("no parameters"));
    }
}
