//! Words that say what is explored: names, and names with a value.

use steadfast_crash::{CrashError, Result};

/// Words of which some have been taken.
pub(super) struct SoakWords {
    left: Vec<String>,
}

impl SoakWords {
    pub fn new(words: &[String]) -> SoakWords {
        SoakWords { left: words.to_vec() }
    }

    /// Whether a word is there.
    pub fn has(&mut self, word: &str) -> bool {
        let before = self.left.len();
        self.left.retain(|own| own != word);
        self.left.len() < before
    }

    /// Those of some words that are there, or all if none is.
    pub fn some_of(&mut self, words: &[&'static str]) -> Vec<&'static str> {
        let found: Vec<_> = words.iter().copied().filter(|word| self.has(word)).collect();
        if found.is_empty() { words.to_vec() } else { found }
    }

    /// The value of `NAME=VALUE`.
    pub fn value(&mut self, name: &str) -> Option<String> {
        let is_its = |word: &String| word.split_once('=').is_some_and(|(own, _)| own == name);
        let at = self.left.iter().position(is_its)?;
        self.left.remove(at).split_once('=').map(|(_, value)| value.to_owned())
    }

    /// A number from 1 on.
    pub fn number(&mut self, name: &str, default: u64) -> Result<u64> {
        let Some(value) = self.value(name) else { return Ok(default) };
        let number = value.parse().ok().filter(|number| *number > 0);
        let what = || format!("{name}={value}: it must be a whole number from 1 on");
        number.ok_or_else(|| CrashError::Words(what()))
    }

    /// Refuses what nobody has taken.
    pub fn end(self) -> Result<()> {
        let Some(word) = self.left.first() else { return Ok(()) };
        Err(CrashError::Words(format!("'{word}' is not known; soak plan --help has the words")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_taken_is_refused() {
        let words = ["ordered", "every=3", "lock"].map(str::to_owned);
        let mut words = SoakWords::new(&words);
        assert_eq!(words.some_of(&["journal", "ordered"]), ["ordered"]);
        assert_eq!(words.some_of(&["internal", "external"]), ["internal", "external"]);
        assert_eq!(words.number("every", 1), Ok(3));
        assert_eq!(words.number("preemptions", 2), Ok(2));
        assert!(words.end().unwrap_err().to_string().contains("'lock' is not known"));
        let mut zero = SoakWords::new(&["every=0".to_owned()]);
        assert!(zero.number("every", 1).is_err());
    }
}
