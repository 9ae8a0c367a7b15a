//! The values of the mount option `transact=`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::options::choose;
use crate::{TransactMask, TransactPolicy};

/// Takes the bit away that every list has: a list that says nothing of unmounting does not discard.
const NO_UMOUNT: &str = "no-umount";

/// A word for each bit, as the mount option spells it.
const WORDS: [(&str, TransactMask); 12] = [
    ("umount", TransactMask::UMOUNT),
    ("create", TransactMask::CREATE),
    ("unlink", TransactMask::UNLINK),
    ("mkdir", TransactMask::MKDIR),
    ("rename", TransactMask::RENAME),
    ("link", TransactMask::LINK),
    ("close", TransactMask::CLOSE),
    ("write", TransactMask::WRITE),
    ("fsync", TransactMask::FSYNC),
    ("truncate", TransactMask::TRUNCATE),
    ("volfull", TransactMask::VOLFULL),
    ("sync", TransactMask::SYNC),
];

impl Default for TransactPolicy {
    /// Everything but writes and truncations; no time.
    fn default() -> Self {
        let mask = TransactMask::all() - TransactMask::WRITE - TransactMask::TRUNCATE;
        TransactPolicy { mask, timed: None }
    }
}

impl TransactPolicy {
    /// Transaction points only where they are asked for, at unmounting neither.
    pub const MANUAL: TransactPolicy = TransactPolicy { mask: TransactMask::empty(), timed: None };

    /// Whether a word can stand in the option's list: in a list of mount options, which commas
    /// separate too, the words after `transact=` belong to it as long as this says so.
    pub fn is_word(word: &str) -> bool {
        matches!(word, "none" | "default" | "all" | NO_UMOUNT)
            || word.starts_with("timed=")
            || WORDS.iter().any(|(w, _)| *w == word)
    }
}

/// Why words are no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransactError {
    /// There is none.
    #[error("a word is needed: {}", all_words())]
    NoWord,
    /// An unknown one.
    #[error("'{word}' is unknown: {}", all_words())]
    Unknown {
        /// The word.
        word: String,
    },
    /// A second time.
    #[error("timed= is there twice")]
    TimedTwice,
    /// `none` beside what makes points.
    #[error("none and {0} contradict each other: take one of them away")]
    Contradiction(String),
    /// A time that is no number with a unit.
    #[error("timed={0}: a whole number with ms, s or m is needed, as timed=5s")]
    NoTime(String),
    /// A time without its unit.
    #[error("timed={0}: of which unit? {0}ms, {0}s or {0}m")]
    NoUnit(String),
    /// A time in another unit.
    #[error("timed={text}: unit '{unit}' is unknown: choose ms, s or m")]
    UnknownUnit {
        /// The time.
        text: String,
        /// Its unit.
        unit: String,
    },
    /// A time beyond 64 bits of milliseconds.
    #[error("timed={0}: too long")]
    TooLong(String),
}

impl FromStr for TransactPolicy {
    type Err = TransactError;

    /// `none`, `default`, `all` or names of operations, and `timed=5s` (also ms, m; `timed=0`
    /// for no time), with commas or colons between. Names add up, in any order. Unmounting is one
    /// of them unless the list says `no-umount`.
    fn from_str(text: &str) -> Result<Self, TransactError> {
        let mut mask = TransactMask::empty();
        let (mut none, mut discards, mut timed) = (false, false, None);
        let words = || text.split([',', ':']).map(str::trim);
        for word in words() {
            match word {
                "" if text.trim().is_empty() => return Err(TransactError::NoWord),
                "none" => none = true,
                NO_UMOUNT => discards = true,
                "default" => mask |= TransactPolicy::default().mask,
                "all" => mask = TransactMask::all(),
                _ => match word.strip_prefix("timed=") {
                    Some(_) if timed.is_some() => return Err(TransactError::TimedTwice),
                    Some(time) => timed = Some(duration(time)?),
                    None => mask |= bit(word)?,
                },
            }
        }
        if let Some(other) = words().find(|word| none && names_operations(word)) {
            return Err(TransactError::Contradiction(other.to_owned()));
        }
        mask.set(TransactMask::UMOUNT, !discards);
        Ok(TransactPolicy { mask, timed: timed.flatten() })
    }
}

/// Whether a word makes points after operations, which `none` says are not to be made. That of
/// unmounting is made in any case.
fn names_operations(word: &str) -> bool {
    matches!(word, "default" | "all") || WORDS[1..].iter().any(|(w, _)| *w == word)
}

fn bit(word: &str) -> Result<TransactMask, TransactError> {
    let found = WORDS.iter().find(|(w, _)| *w == word).map(|(_, bit)| *bit);
    found.ok_or_else(|| TransactError::Unknown { word: word.to_owned() })
}

fn all_words() -> String {
    let operations = WORDS.iter().map(|(w, _)| *w);
    choose(["none", "default", "all"].into_iter().chain(operations).chain([NO_UMOUNT, "timed=5s"]))
}

fn duration(text: &str) -> Result<Option<Duration>, TransactError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'));
    let given = || text.to_owned();
    let number = number.ok_or_else(|| TransactError::NoTime(given()))?;
    let unit_ms = match &text[digits.len()..] {
        "s" => 1000,
        "ms" => 1,
        "m" | "min" => 60_000,
        "" if number == 0 => 1,
        "" => return Err(TransactError::NoUnit(given())),
        unit => return Err(TransactError::UnknownUnit { text: given(), unit: unit.to_owned() }),
    };
    let ms = number.checked_mul(unit_ms).ok_or_else(|| TransactError::TooLong(given()))?;
    Ok((ms > 0).then_some(Duration::from_millis(ms)))
}

impl fmt::Display for TransactPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.mask - TransactMask::UMOUNT;
        let set = WORDS.iter().filter(|(_, bit)| named.contains(*bit));
        let mut words: Vec<String> = set.map(|(word, _)| (*word).into()).collect();
        if words.is_empty() {
            words.push("none".into());
        }
        if !self.mask.contains(TransactMask::UMOUNT) {
            words.push(NO_UMOUNT.into());
        }
        if let Some(time) = self.timed {
            words.push(format!("timed={}ms", time.as_millis()));
        }
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_policy_and_back() {
        let parse = |text: &str| text.parse::<TransactPolicy>();
        let p = parse("create,unlink,timed=5s").unwrap();
        assert_eq!(p.mask, TransactMask::CREATE | TransactMask::UNLINK | TransactMask::UMOUNT);
        assert_eq!(p.timed, Some(Duration::from_secs(5)));
        let all_but_one = "all,no-umount";
        for text in ["none", "default", all_but_one, "no-umount", "sync:timed=20ms", "write"] {
            let policy = parse(text).unwrap();
            assert_eq!(parse(&policy.to_string()), Ok(policy), "{text}");
        }
        assert_eq!(parse("none,no-umount"), Ok(TransactPolicy::MANUAL));
        assert_eq!(parse("none").unwrap().to_string(), "none");
        assert_eq!(parse("no-umount,sync").unwrap().to_string(), "sync,no-umount");
        assert!(parse("all").unwrap().mask.is_all());
        assert!(!parse("default").unwrap().mask.contains(TransactMask::WRITE));
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("creat").contains("'creat'"));
        assert!(message("timed=5h").contains("'h'"));
        for (text, expected) in [
            ("timed=", "a whole number"),
            ("timed=-1", "a whole number"),
            ("timed=+1s", "a whole number"),
            ("timed=1.5s", "a whole number"),
            ("timed=5", "5ms, 5s or 5m"),
            ("timed=1s:timed=2s", "twice"),
            ("all:none", "none and all contradict"),
            ("none,sync", "none and sync contradict"),
            ("", "a word is needed"),
            ("sync,,fsync", "'' is unknown"),
        ] {
            assert!(message(text).contains(expected), "{text}: {:?}", parse(text));
        }
        // The order says nothing.
        assert_eq!(parse("no-umount,all"), parse("all,no-umount"));
        assert_eq!(parse("none,timed=0").unwrap().timed, None);
        assert_eq!(parse("none,umount,timed=1m").unwrap().timed, Some(Duration::from_secs(60)));
        assert!(TransactPolicy::is_word("timed=1") && !TransactPolicy::is_word("data=ordered"));
    }
}
