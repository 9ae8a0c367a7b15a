//! JSON for programs: every command with `--json` prints one document, also when it fails.
//!
//! Each has `format`, which says what it is, and `version`, which grows when a field is taken away
//! or means something else. What failed is `steadfast-error`: `error` with `message`, `hint` (or
//! null) and `exit_status`. A command prints its document at the end of its work, or an error;
//! never both.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use serde::Serialize;
use serde_json::Value;
use steadfast_vfs::foreign::json;

use crate::cli::{ListFormat, TableFormat};

/// A document: its head, then the fields of `body`, which is a structure or a map.
///
/// # Errors
/// The output's.
pub fn print(
    out: &mut dyn Write,
    format: &str,
    version: u32,
    body: impl Serialize,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a, B> {
        format: &'a str,
        version: u32,
        #[serde(flatten)]
        body: B,
    }
    let text = serde_json::to_string_pretty(&Document { format, version, body })?;
    writeln!(out, "{}", json(text))
}

/// The document of an error.
///
/// # Errors
/// The output's.
pub fn error(
    out: &mut dyn Write,
    message: &str,
    hint: Option<&str>,
    exit_status: u8,
) -> io::Result<()> {
    let error = serde_json::json!({ "message": message, "hint": hint, "exit_status": exit_status });
    print(out, "steadfast-error", 1, serde_json::json!({ "error": error }))
}

/// Whether a command line that was understood asks for a document on the standard output.
pub fn is_wanted(matches: &ArgMatches) -> bool {
    if let Some((name, matches)) = matches.subcommand() {
        let iozone = name == "iozone" && {
            let words = matches.get_many::<String>("options").into_iter().flatten();
            is_asked_for(words.map(String::as_str), true)
        };
        return iozone || is_wanted(matches);
    }
    let flag = matches.try_get_one::<bool>("json");
    let path = matches.try_get_one::<PathBuf>("json");
    let list = matches.try_get_one::<ListFormat>("format");
    let table = matches.try_get_one::<TableFormat>("format");
    matches!(flag, Ok(Some(true)))
        || matches!(path, Ok(Some(path)) if path == Path::new("-"))
        || matches!(list, Ok(Some(ListFormat::Json)))
        || matches!(table, Ok(Some(TableFormat::Json)))
}

/// The same of one that was not understood, as far as its words show it.
pub fn seems_wanted(words: &[OsString]) -> bool {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let names_a_file = matches!(
        words[..],
        ["iozone", ..] | ["lab", "run" | "sensitivity", ..] | ["sweep", "merge" | "submit", ..]
    );
    is_asked_for(words.into_iter(), names_a_file)
}

/// `--json`, which `names_a_file` or not, and `--format json`.
fn is_asked_for<'a>(words: impl Iterator<Item = &'a str>, names_a_file: bool) -> bool {
    let mut words = words.take_while(|word| *word != "--").peekable();
    while let Some(word) = words.next() {
        let next = words.peek().copied();
        let asks = match word {
            // Without the file that is to be named nothing else can be meant.
            "--json" => !names_a_file || next.is_none_or(|next| next.starts_with('-')),
            "--json=-" | "--format=json" => true,
            "--format" => next == Some("json"),
            _ => false,
        };
        if asks {
            return true;
        }
    }
    false
}

/// The fields of a serialized structure, to be changed before they are printed.
///
/// # Errors
/// It cannot be JSON.
pub fn fields(body: impl Serialize) -> serde_json::Result<serde_json::Map<String, Value>> {
    match serde_json::to_value(body)? {
        Value::Object(fields) => Ok(fields),
        other => Ok([("value".to_owned(), other)].into_iter().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_head_comes_before_the_fields() {
        let mut out = Vec::new();
        print(&mut out, "steadfast-test", 2, json!({ "n": 7, "a": [1.5] })).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("{\n  \"format\": \"steadfast-test\",\n  \"version\": 2,"),
            "{text}"
        );
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&found["n"], &found["a"]), (&json!(7), &json!([1.5])));
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let (name, mut out) = ("\x1b\x7f\u{9b}\u{202e}\u{fc}\n", Vec::new());
        print(&mut out, "steadfast-test", 1, json!({ "name": name })).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\"\\u001b\\u007f\\u009b\\u202e\u{fc}\\n\""), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["name"], name);
    }

    #[test]
    fn a_line_that_was_not_understood_may_ask_for_json() {
        let seems = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            seems_wanted(&words)
        };
        assert!(seems("steadfast check --json"));
        assert!(seems("steadfast lab run x --json - --cuts y"));
        assert!(seems("steadfast lab devices --format json x"));
        assert!(seems("steadfast iozone --json=- -q"));
        assert!(!seems("steadfast lab run x --json file --cuts y"));
        assert!(seems("steadfast lab run x --json") && seems("steadfast lab run --json --cuts 1"));
        assert!(seems("steadfast lab check --json x y") && seems("steadfast lab list --json x"));
        assert!(!seems("steadfast check disk.img"));
        assert!(!seems("steadfast crash run -- prog --json"));
    }
}
