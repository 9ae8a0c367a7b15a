//! What a source file declares and names, read line by line. It relies on rustfmt: an item of a
//! module begins in the first column, one of an `impl` in the fifth.

use std::collections::HashSet;
use std::path::PathBuf;

/// A public item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub file: PathBuf,
    pub line: usize,
    pub kind: &'static str,
    pub name: String,
    /// The type whose function or constant it is.
    pub of: Option<String>,
}

/// A file.
#[derive(Debug, Default)]
pub struct Source {
    /// All words of its code, tests included.
    pub words: HashSet<String>,
    /// The same without the tests at its end.
    pub without_tests: HashSet<String>,
    /// All words of the examples in its documentation.
    pub in_examples: HashSet<String>,
    /// What it declares public; `file` is empty.
    pub items: Vec<Item>,
    /// Words in signatures of public items, each with the item.
    pub in_signatures: Vec<(String, String)>,
    /// The names in its `pub use`.
    pub exported: HashSet<String>,
    /// Other names that its `pub use` gives: the old one, the new one.
    pub renamed: Vec<(String, String)>,
    /// The modules of which a `pub use` takes everything.
    pub globs: HashSet<String>,
    /// The modules that are files of their own, and whether they are public.
    pub modules: Vec<(String, bool)>,
}

const KINDS: [&str; 8] = ["fn", "struct", "enum", "trait", "const", "static", "type", "union"];

impl Source {
    pub fn new(text: &str) -> Source {
        let lines: Vec<&str> = text.lines().map(without_comment).collect();
        let mut pairs = lines.windows(2);
        let tests =
            pairs.position(|two| two[0] == "#[cfg(test)]" && two[1].starts_with("mod tests"));
        let product = &lines[..tests.unwrap_or(lines.len())];
        let all = |lines: &[&str]| lines.iter().flat_map(|l| words(l)).map(str::to_owned).collect();
        let mut source = Source {
            words: all(&lines),
            without_tests: all(product),
            in_examples: examples(text),
            ..Source::default()
        };
        source.read(product);
        source
    }

    fn read(&mut self, lines: &[&str]) {
        let mut of = None;
        for (number, line) in lines.iter().enumerate() {
            if let Some(name) = implemented(line) {
                of = Some(name.to_owned());
            } else if line.starts_with('}') {
                of = None;
            }
            self.read_module(line);
            if line.starts_with("pub use ") {
                self.read_use(&until(&lines[number..], &[';']));
            }
            let inner = line.strip_prefix("    ").filter(|inner| !inner.starts_with(' '));
            if let Some((kind, name)) = declared(inner.unwrap_or(line)) {
                let item = Item {
                    file: PathBuf::new(),
                    line: number + 1,
                    kind,
                    name: name.to_owned(),
                    of: inner.and(of.clone()),
                };
                let signature = signature(kind, &lines[number..]);
                self.sign(name, &signature);
                self.items.push(item);
            } else if line.ends_with("! {") && !line.starts_with(char::is_whitespace) {
                // A list from which a macro makes items, as an enum of the types that it names.
                self.sign("", &signature("enum", &lines[number..]));
            } else if let Some(inner) = inner
                && (inner.starts_with("pub ") || inner.starts_with("type "))
            {
                // A field, or a type of a trait that is implemented.
                self.sign("", inner);
            }
        }
    }

    fn sign(&mut self, of: &str, signature: &str) {
        let words = words(signature).map(|word| (word.to_owned(), of.to_owned()));
        self.in_signatures.extend(words);
    }

    fn read_module(&mut self, line: &str) {
        let is_public = line.starts_with("pub mod ");
        let rest = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ");
        if let Some(name) = rest.and_then(|rest| rest.trim_end().strip_suffix(';')) {
            self.modules.push((name.to_owned(), is_public));
        }
    }

    fn read_use(&mut self, statement: &str) {
        let all: Vec<&str> = words(statement).collect();
        for renamed in all.windows(3).filter(|three| three[1] == "as") {
            self.renamed.push((renamed[0].to_owned(), renamed[2].to_owned()));
        }
        self.exported.extend(all.into_iter().map(str::to_owned));
        for (before, _) in statement.match_indices("::*").map(|(at, _)| statement.split_at(at)) {
            self.globs.extend(words(before).last().map(str::to_owned));
        }
    }
}

fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// The words of code blocks in documentation.
fn examples(text: &str) -> HashSet<String> {
    let (mut inside, mut found) = (false, HashSet::new());
    for line in text.lines().map(str::trim_start) {
        match line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
            Some(doc) if doc.trim_start().starts_with("```") => inside = !inside,
            Some(doc) if inside => found.extend(words(doc).map(str::to_owned)),
            Some(_) => {}
            None => inside = false,
        }
    }
    found
}

/// Kind and name of the public item that a line declares.
fn declared(line: &str) -> Option<(&'static str, &str)> {
    let mut rest = line.strip_prefix("pub ")?;
    loop {
        let (word, after) = rest.split_once(' ')?;
        let is_function = after.split(' ').any(|word| word == "fn");
        if ["unsafe", "async", "extern", "\"C\"", "const"].contains(&word) && is_function {
            rest = after;
            continue;
        }
        let kind = KINDS.into_iter().find(|kind| *kind == word)?;
        return Some((kind, words(after).next()?));
    }
}

/// The type for which a line begins an `impl`.
fn implemented(line: &str) -> Option<&str> {
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '<') - i32::from(*c == '>');
            depth == 0
        });
        rest = &rest[end?.0 + 1..];
    }
    let target = rest.split_once(" for ").map_or(rest, |(_, target)| target);
    words(target).next()
}

/// Lines up to the first that ends with one of these.
fn until(lines: &[&str], ends: &[char]) -> String {
    let last = lines.iter().position(|line| line.trim_end().ends_with(ends));
    lines[..last.map_or(lines.len(), |last| last + 1)].join("\n")
}

/// What a user of an item gets to see: of enums and traits the whole.
fn signature(kind: &str, lines: &[&str]) -> String {
    match kind {
        "enum" | "trait" => {
            let end = lines.iter().position(|line| line.starts_with('}'));
            lines[..end.map_or(lines.len(), |end| end + 1)].join("\n")
        }
        _ => until(lines, &['{', ';', '}']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read() {
        assert_eq!(declared("pub fn a(b: C) {"), Some(("fn", "a")));
        assert_eq!(declared("pub const fn a() {"), Some(("fn", "a")));
        assert_eq!(declared("pub const A: u8 = 1;"), Some(("const", "A")));
        assert_eq!(declared("pub unsafe extern \"C\" fn a() {}"), Some(("fn", "a")));
        assert_eq!(declared("pub struct A<T>(T);"), Some(("struct", "A")));
        assert_eq!(declared("pub(crate) fn a() {"), None);
        assert_eq!(declared("pub field: u8,"), None);
        assert_eq!(implemented("impl<T: Into<U>> A<T> {"), Some("A"));
        assert_eq!(implemented("impl B for A {"), Some("A"));
        assert_eq!(implemented("    impl B for A {"), None);
    }

    #[test]
    fn modules_uses_and_signatures_are_read() {
        let text = "mod a;\npub mod b;\npub use a::{\n    C, D as E,\n};\npub use b::*;\n\
            pub fn f(\n    g: G,\n) -> H {\n    let local = I;\n}\nlist! {\n    J(K),\n}\n";
        let source = Source::new(text);
        assert_eq!(source.modules, [("a".to_owned(), false), ("b".to_owned(), true)]);
        assert!(["C", "D", "E"].iter().all(|name| source.exported.contains(*name)));
        assert!(source.globs.contains("b"));
        assert_eq!(source.renamed, [("D".to_owned(), "E".to_owned())]);
        let signed: Vec<&str> =
            source.in_signatures.iter().map(|(word, _)| word.as_str()).collect();
        assert!(signed.contains(&"G") && signed.contains(&"H") && !signed.contains(&"I"));
        assert!(signed.contains(&"K"));
    }
}
