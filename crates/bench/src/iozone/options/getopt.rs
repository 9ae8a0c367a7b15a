//! Words into options, as getopt(3) does it.

use super::UsageError;

/// IOzone's flags without an operand.
const PLAIN: &str = "ZQNIBDGCTOMREWovAxamwphcezK";
/// IOzone's flags with one.
const WITH_OPERAND: &str = "JjkVrtsfFdluUSLHPibXYgnyq";
/// Extended options (`-+X`) whose operand is the next word.
const EXTENDED_WITH_OPERAND: &str = "aQbRchmxipAqKwyCSWHPO";
/// Our own long options that take an operand.
const LONG: [&str; 4] = ["--json", "--settle", "--repeat", "--resume"];
/// Our own long options that take none.
const LONG_PLAIN: [&str; 2] = ["--help", "--drop-caches"];

/// One option with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// As it would be named in a message: "-t", "-+p", "--json".
    pub(super) name: String,
    /// The operand, for those that take one.
    pub(super) operand: String,
}

/// The words of a command line, one option at a time.
pub(super) struct Words<'a> {
    args: &'a [String],
    next: usize,
    /// What is left of a cluster of flags ("Rc" of "-CRc").
    cluster: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(args: &'a [String]) -> Words<'a> {
        Words { args, next: 0, cluster: "" }
    }

    /// The next word, whatever it is: the operand of an option, a name of -F.
    pub(super) fn operand(&mut self, option: &str) -> Result<&'a str, UsageError> {
        let word = self
            .args
            .get(self.next)
            .ok_or_else(|| UsageError::new(255, format!("{option} needs something behind it")))?;
        self.next += 1;
        Ok(word)
    }

    /// The next option.
    pub(super) fn option(&mut self) -> Result<Option<Word>, UsageError> {
        if self.cluster.is_empty() {
            let Some(word) = self.args.get(self.next) else { return Ok(None) };
            self.next += 1;
            if word.starts_with("--") {
                return self.long(word).map(Some);
            }
            match word.strip_prefix('-') {
                Some(rest) if !rest.is_empty() => self.cluster = rest,
                _ => return Err(stray(word)),
            }
        }
        self.flag().map(Some)
    }

    fn long(&mut self, word: &str) -> Result<Word, UsageError> {
        let (name, glued) = word.split_once('=').map_or((word, None), |(n, o)| (n, Some(o)));
        let operand = match glued {
            None if LONG_PLAIN.contains(&name) => "",
            _ if !LONG.contains(&name) => return Err(unknown(name)),
            Some(operand) => operand,
            None => self.operand(name)?,
        };
        Ok(Word { name: name.to_owned(), operand: operand.to_owned() })
    }

    fn flag(&mut self) -> Result<Word, UsageError> {
        // OK to unwrap: only called with a cluster that is not empty.
        let flag = self.cluster.chars().next().unwrap();
        let rest = &self.cluster[flag.len_utf8()..];
        if flag == '+' {
            self.cluster = "";
            return self.extended(rest);
        }
        let name = format!("-{flag}");
        if WITH_OPERAND.contains(flag) {
            self.cluster = "";
            let operand =
                if rest.is_empty() { self.operand(&name)?.to_owned() } else { rest.to_owned() };
            return Ok(Word { name, operand });
        }
        if !PLAIN.contains(flag) {
            return Err(unknown(&name));
        }
        self.cluster = rest;
        Ok(Word { name, operand: String::new() })
    }

    /// `-+X`: to getopt all that follows the '+' is its operand, of which IOzone looks at the
    /// first letter only.
    fn extended(&mut self, rest: &str) -> Result<Word, UsageError> {
        let mut letters = rest.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else {
            return Err(unknown(&format!("-+{rest}")));
        };
        let name = format!("-+{letter}");
        let operand = if EXTENDED_WITH_OPERAND.contains(letter) {
            self.operand(&name)?.to_owned()
        } else {
            String::new()
        };
        Ok(Word { name, operand })
    }
}

pub(super) fn unknown(name: &str) -> UsageError {
    UsageError::new(255, format!("IOzone has no option {name}; -h lists the options"))
}

fn stray(word: &str) -> UsageError {
    UsageError::new(255, format!("\"{word}\" is not an option and belongs to none; see -h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<(String, String)>, UsageError> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut words = Words::new(&args);
        let mut all = Vec::new();
        while let Some(word) = words.option()? {
            all.push((word.name, word.operand));
        }
        Ok(all)
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(n, o)| (n.to_string(), o.to_string())).collect()
    }

    #[test]
    fn clusters_glued_operands_and_extended_options() {
        let all = words("-MoT -t3 -s 4g -+n -+p 70 -Ri0 --json=x --json -").unwrap();
        let expected = [
            ("-M", ""),
            ("-o", ""),
            ("-T", ""),
            ("-t", "3"),
            ("-s", "4g"),
            ("-+n", ""),
            ("-+p", "70"),
            ("-R", ""),
            ("-i", "0"),
            ("--json", "x"),
            ("--json", "-"),
        ];
        assert_eq!(all, pairs(&expected));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for line in ["-t", "-+p", "-:", "-%", "x", "-", "--jason x", "-+", "-+nn", "-+p70"] {
            assert_eq!(words(line).unwrap_err().iozone_exit, 255, "{line}");
        }
    }
}
