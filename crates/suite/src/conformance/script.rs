//! The language of cases.
//!
//! ```text
//! # a remark
//! case rename/{old}-onto-{new} with old=file,dir new=file,dir
//!     make {old} a
//!     make {new} b
//!     as 1001:1001,1002 rename a b
//! ```
//!
//! A case with lists is one case for each combination of their members. A step is words; `as
//! UID[:GID[,GROUP...]]` before it has another user do it. In paths, a component `n*255` is the
//! letter 255 times; `@path4095` is a path of so many bytes to the file `a`; `""` is empty.

use crate::{Result, SuiteError};

/// A case: its name and its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// `file/what`, unique.
    pub name: String,
    /// In order.
    pub steps: Vec<Step>,
}

/// One system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// As it is written, for the transcript.
    pub text: String,
    /// Who does it; root, if nobody is named.
    pub user: Option<User>,
    /// The call and its arguments; at least one.
    pub words: Vec<String>,
}

/// Another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User.
    pub uid: u32,
    /// Group; the same number as the user's, unless said otherwise.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// Reads the cases of a file; their names begin with the file's.
pub fn parse(file: &str, text: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut open: Option<(&str, Vec<&str>)> = None;
    for line in text.lines() {
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        if let Some(header) = words.strip_prefix("case ") {
            if let Some((header, steps)) = open.replace((header, Vec::new())) {
                expand(file, header, &steps, &mut cases)?;
            }
        } else if let Some((_, steps)) = &mut open {
            steps.push(words);
        } else {
            let what = format!("'{words}' stands before the first case");
            return Err(SuiteError::Script { case: file.to_owned(), what });
        }
    }
    if let Some((header, steps)) = open {
        expand(file, header, &steps, &mut cases)?;
    }
    Ok(cases)
}

/// One case for each combination of the header's lists.
fn expand(file: &str, header: &str, steps: &[&str], cases: &mut Vec<Case>) -> Result<()> {
    let (name, lists) = header.split_once(" with ").unwrap_or((header, ""));
    let fault = |what: String| SuiteError::Script { case: format!("{file}/{name}"), what };
    if steps.is_empty() {
        return Err(fault("has no steps".into()));
    }
    let mut combinations: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for list in lists.split_whitespace() {
        let Some((key, members)) = list.split_once('=') else {
            return Err(fault(format!("'{list}' is no list NAME=MEMBER,MEMBER")));
        };
        let members: Vec<&str> = members.split(',').collect();
        let mut longer = Vec::new();
        for combination in &combinations {
            for member in &members {
                let mut with = combination.clone();
                with.push((key, *member));
                longer.push(with);
            }
        }
        combinations = longer;
    }
    for combination in combinations {
        let fill = |text: &str| {
            let put = |t: String, (k, v): &(&str, &str)| t.replace(&format!("{{{k}}}"), v);
            combination.iter().fold(text.to_owned(), put)
        };
        let steps: Result<Vec<Step>> =
            steps.iter().map(|s| step(&fill(s)).map_err(&fault)).collect();
        cases.push(Case { name: format!("{file}/{}", fill(name.trim())), steps: steps? });
    }
    Ok(())
}

fn step(text: &str) -> std::result::Result<Step, String> {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let mut user = None;
    if words[0] == "as" {
        if words.len() < 3 {
            return Err(format!("'{text}': as USER STEP"));
        }
        user = Some(parse_user(&words[1])?);
        words.drain(..2);
    }
    Ok(Step { text: words_as_written(text), user, words })
}

fn words_as_written(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parse_user(text: &str) -> std::result::Result<User, String> {
    let number = |t: &str| t.parse::<u32>().map_err(|_| format!("'{t}' is no user or group"));
    let (uid, groups) = text.split_once(':').unwrap_or((text, text));
    let groups: std::result::Result<Vec<u32>, String> = groups.split(',').map(number).collect();
    let mut groups = groups?;
    // `split` gives at least one.
    let gid = groups.remove(0);
    Ok(User { uid: number(uid)?, gid, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_multiplied_out() {
        let text = "case {a}-{b} with a=x,y b=1,2\n  make {a} {b}\n\ncase z\n as 5:6,7 rmdir q\n";
        let cases = parse("f", text).unwrap();
        let names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["f/x-1", "f/x-2", "f/y-1", "f/y-2", "f/z"]);
        assert_eq!(cases[1].steps[0].words, ["make", "x", "2"]);
        let user = User { uid: 5, gid: 6, groups: vec![7] };
        assert_eq!(cases[4].steps[0].user, Some(user));
        assert_eq!(cases[4].steps[0].words, ["rmdir", "q"]);
    }

    #[test]
    fn faults_name_the_case() {
        let fault = |text| parse("f", text).unwrap_err().to_string();
        assert!(fault("make a").contains("before the first case"));
        assert!(fault("case a\ncase b\n x").contains("f/a: has no steps"));
        assert!(fault("case a with x\n x").contains("no list"));
        assert!(fault("case a\n as you x").contains("no user"));
    }
}
