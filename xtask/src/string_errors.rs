//! Public functions whose error is a text: a library's caller cannot ask such an error anything.

use std::path::Path;

use anyhow::Context;

use crate::tidy::rust_files;

/// Where they still are, by the beginning of the path. Only becomes shorter: what has none any more
/// is a finding too.
const EXCEPTIONS: [&str; 0] = [];

/// Whether a file is of a library: not of a program, whose modules `main.rs` names.
fn is_library(root: &Path, name: &str) -> bool {
    let Some((of_crate, rest)) = name.split_once("/src/") else { return false };
    let program = std::fs::read_to_string(root.join(of_crate).join("src/main.rs"));
    let program = program.unwrap_or_default();
    let module = rest.split(['/', '.']).next().unwrap_or_default();
    rest != "main.rs" && !program.lines().any(|line| line == format!("mod {module};"))
}

/// The findings, `path:line: what`.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    rust_files(&root.join("crates"), &mut files)?;
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        if is_library(root, &name) {
            let text = std::fs::read_to_string(&file).with_context(|| name.clone())?;
            let of_file = in_text(&text).into_iter();
            found.extend(of_file.map(|(line, item)| (name.clone(), line, item)));
        }
    }
    Ok(judged(found, &EXCEPTIONS))
}

fn judged(found: Vec<(String, usize, String)>, exceptions: &[&str]) -> Vec<String> {
    let excepted = |name: &str| exceptions.iter().any(|e| name.starts_with(e));
    let none = exceptions.iter().filter(|e| !found.iter().any(|(name, ..)| name.starts_with(*e)));
    let over = none.map(|e| format!("{e}: no text as an error any more: take it off the list"));
    let new = found.iter().filter(|(name, ..)| !excepted(name));
    let new = new.map(|(name, line, item)| {
        format!("{name}:{line}: `{item}` returns Result<_, String>: make it an enumeration")
    });
    new.chain(over.collect::<Vec<_>>()).collect()
}

/// Public functions, functions of traits, and public types that return a text as their error:
/// line and name.
fn in_text(text: &str) -> Vec<(usize, String)> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    // In the functions of a type that only this crate sees.
    let mut hidden = false;
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with("impl") {
            hidden = lines.iter().any(|other| declares_hidden(other, implemented(line)));
        } else if *line == "}" {
            hidden = false;
        }
        if hidden {
            continue;
        }
        let line = line.trim_start();
        let public = ["pub fn ", "pub const fn ", "pub type "].iter().any(|p| line.starts_with(p));
        if !public && !line.starts_with("fn ") {
            continue;
        }
        // To the body, or the end of what has none.
        let mut signature = String::new();
        for line in &lines[number..] {
            signature.push_str(line.trim());
            signature.push(' ');
            if line.contains('{') || line.trim_end().ends_with(';') {
                break;
            }
        }
        // Without `pub` it is one of a trait, if it has no body; in an implementation the trait
        // has it.
        let is_declared = signature.trim_end().ends_with(';');
        let is_error = signature.contains("Result<") && signature.contains(", String>");
        let returned = signature.rsplit_once("-> ").map_or(signature.as_str(), |(_, r)| r);
        let returns = returned.contains("Result<") && returned.contains(", String>");
        if is_error && returns && (public || is_declared) {
            let name = line.trim_start_matches("pub ").trim_start_matches("const ");
            let name = name.split(['(', '<', ' ', '=']).nth(1).unwrap_or_default();
            found.push((number + 1, name.to_owned()));
        }
    }
    found
}

/// The type that an `impl` is of, without its parameters.
fn implemented(line: &str) -> &str {
    // Of a trait's the type stands behind `for`; parameters of its own stand before it.
    let of = line.split_once(" for ").map_or(line, |(_, of)| of);
    let of = match of.strip_prefix("impl<") {
        Some(rest) => rest.split_once("> ").map_or(rest, |(_, of)| of),
        None => of.trim_start_matches("impl "),
    };
    of.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Whether a line declares this type, and not as public.
fn declares_hidden(line: &str, name: &str) -> bool {
    let declared = ["struct ", "enum "].iter().find_map(|kind| {
        let (before, rest) = line.split_once(kind)?;
        (before.is_empty() || before.starts_with("pub(")).then_some(rest)
    });
    let is_end = |c: char| !c.is_alphanumeric() && c != '_';
    declared.is_some_and(|rest| rest.split(is_end).next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_library_returns_a_text_as_its_error() {
        assert_eq!(check(&crate::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn only_what_a_caller_sees_is_found() {
        let text = "pub fn a(\n    x: u8,\n) -> Result<u8, String> {\n\
            \x20   fn b() -> Result<(), String> {}\n\
            pub fn c(d: Map<u8, String>) -> Result<(), E> {\npub fn d() -> Vec<String> {\n\
            trait T {\n    fn e(&self) -> Result<(), String>;\n}\n\
            pub type F<T> = Result<T, String>;\n";
        let found = in_text(text);
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 8, 10]);
        assert_eq!(found[0].1, "a");
        let hidden = "pub(super) struct S<'f, T> {\n}\nimpl<'f, T> S<'f, T> {\n\
            \x20   pub fn a() -> Result<(), String> {\n    }\n}\n\
            pub fn c() -> Result<(), String> {\n}\n\
            impl Other {\n    pub fn b() -> Result<(), String> {\n    }\n}\n";
        assert_eq!(in_text(hidden), [(7, "c".to_owned()), (10, "b".to_owned())]);
        assert_eq!(implemented("impl<T: Into<u8>> From<T> for Two<T> {"), "Two");
    }

    #[test]
    fn an_exception_that_is_none_any_more_is_a_finding() {
        let found = vec![("crates/a/src/x.rs".to_owned(), 1, "f".to_owned())];
        assert_eq!(judged(found.clone(), &["crates/a/"]), Vec::<String>::new());
        let all = judged(found, &["crates/b/"]);
        assert!(all[0].starts_with("crates/a/src/x.rs:1: `f`"), "{all:?}");
        assert!(all[1].contains("take it off the list"), "{all:?}");
    }
}
