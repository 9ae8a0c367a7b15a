//! Options as getopt(3C) takes them apart: single letters, joined or not, up to the first operand.

use crate::command::{CommandError, Misuse, wrong};
use crate::name;

/// An option, and its argument if it takes one.
#[derive(Debug, PartialEq, Eq)]
pub struct OptionWord<'a> {
    /// The letter.
    pub letter: char,
    /// What follows it; empty for one that takes nothing.
    pub argument: &'a str,
}

/// Options off the front of `words`, and the rest. In `letters` a colon follows each that takes an
/// argument. What `-h` and `-s` mean in all commands is answered here.
pub fn options<'a>(
    letters: &str,
    usage: &str,
    words: &'a [String],
) -> Result<(Vec<OptionWord<'a>>, &'a [String]), Misuse> {
    let (found, rest) = taken_apart(letters, words).map_err(|e| wrong(e, usage))?;
    for option in &found {
        match option.letter {
            'h' if option.argument.is_empty() => return Err(Misuse::Help(usage.into())),
            's' => return Err(name::no_such_set(option.argument).into()),
            _ => {}
        }
    }
    Ok((found, rest))
}

fn taken_apart<'a>(
    letters: &str,
    words: &'a [String],
) -> Result<(Vec<OptionWord<'a>>, &'a [String]), CommandError> {
    let (mut found, mut rest) = (Vec::new(), words);
    while let Some((word, behind)) = rest.split_first() {
        let Some(cluster) = word.strip_prefix('-').filter(|c| !c.is_empty()) else { break };
        rest = behind;
        if cluster == "-" {
            break;
        }
        let mut at = cluster.char_indices();
        while let Some((_, letter)) = at.next() {
            let known = letters.find(letter).filter(|_| letter != ':');
            let Some(known) = known else {
                return Err(CommandError::of(format!("illegal option -- {letter}")));
            };
            if !letters[known + letter.len_utf8()..].starts_with(':') {
                found.push(OptionWord { letter, argument: "" });
                continue;
            }
            let joined = &cluster[at.offset()..];
            let argument = match (joined, rest.split_first()) {
                ("", Some((next, behind))) => {
                    rest = behind;
                    next.as_str()
                }
                ("", None) => {
                    let what = format!("option requires an argument -- {letter}");
                    return Err(CommandError::of(what));
                }
                (joined, _) => joined,
            };
            found.push(OptionWord { letter, argument });
            break;
        }
    }
    Ok((found, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(letters: &str, line: &str) -> Result<(String, String), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (found, rest) = taken_apart(letters, &words).map_err(|e| e.text)?;
        let found = found.iter().map(|g| format!("{}{}", g.letter, g.argument));
        Ok((found.collect::<Vec<_>>().join(" "), rest.join(" ")))
    }

    #[test]
    fn letters_may_be_joined_and_end_at_the_first_operand() {
        let ok = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(of("fnr:", "-fn d1 -f"), ok("f n", "d1 -f"));
        assert_eq!(of("fnr:", "-rfirst d1"), ok("rfirst", "d1"));
        assert_eq!(of("fnr:", "-r first d1"), ok("rfirst", "d1"));
        assert_eq!(of("fnr:", "-fr first -- -n"), ok("f rfirst", "-n"));
        assert_eq!(of("f", "- x"), ok("", "- x"));
    }

    #[test]
    fn what_is_no_option_is_said() {
        assert_eq!(of("f", "-x").unwrap_err(), "illegal option -- x");
        assert_eq!(of("f:", "-:").unwrap_err(), "illegal option -- :");
        assert_eq!(of("f:", "-f").unwrap_err(), "option requires an argument -- f");
        assert_eq!(of("f", "-\u{e9}").unwrap_err(), "illegal option -- \u{e9}");
    }
}
