//! Every public item of the library has an example in its documentation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of the library, from `lib.rs` on.
fn sources() -> Vec<PathBuf> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut todo) = (Vec::new(), vec![src.join("lib.rs")]);
    while let Some(file) = todo.pop() {
        let below = match file.file_name() {
            Some(name) if name == "lib.rs" => src.clone(),
            _ => file.with_extension(""),
        };
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines() {
            let module = line.strip_prefix("pub ").unwrap_or(line);
            let name = module.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
            todo.extend(name.map(|name| below.join(format!("{name}.rs"))).filter(|p| p.exists()));
        }
        files.push(file);
    }
    files
}

/// The name of the item that a line begins, if it is a public one: kind and name.
fn item(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const fn ").map_or(rest, |_| &rest["const ".len()..]);
    let (kind, rest) = rest.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let known = ["fn", "struct", "enum", "trait", "type", "const"].contains(&kind);
    (known && !name.is_empty()).then_some((kind, name))
}

/// Items without an example, and how many have one.
fn without_example(text: &str, public: &BTreeSet<String>) -> (Vec<String>, usize) {
    let (mut missing, mut good, mut documented, mut in_public) = (Vec::new(), 0, false, true);
    for line in text.lines() {
        if line.starts_with("impl") {
            let of = line.split(" for ").last().unwrap_or(line);
            let of = of.trim_start_matches("impl").trim_start();
            let of = of.strip_prefix('<').and_then(|r| r.split_once("> ")).map_or(of, |(_, of)| of);
            let name = of.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            in_public = name.is_some_and(|name| public.contains(name));
        }
        let trimmed = line.trim_start();
        if trimmed.starts_with("///") {
            documented |= trimmed.contains("```");
        } else if let Some((_, name)) = item(line) {
            let is_member = line.starts_with(' ');
            // In this workspace what is not for others is public in private modules and types.
            if (is_member && in_public) || (!is_member && public.contains(name)) {
                if documented { good += 1 } else { missing.push(name.to_owned()) }
            }
            documented = false;
        } else if !trimmed.starts_with("#[") {
            documented = false;
        }
    }
    (missing, good)
}

#[test]
fn every_public_item_has_an_example() {
    let files = sources();
    let texts: Vec<String> = files.iter().map(|f| fs::read_to_string(f).unwrap()).collect();
    // What `pub use crate::...` names, and what the public modules hand on.
    let mut public = BTreeSet::new();
    for text in &texts {
        let uses = text.split("\npub use ").skip(1).filter_map(|rest| rest.split_once(';'));
        for (path, _) in uses.filter(|(path, _)| !path.starts_with("steadfast_")) {
            let names = path.split(|c: char| !c.is_alphanumeric() && c != '_');
            public.extend(names.filter(|n| !n.is_empty()).map(str::to_owned));
        }
    }
    public.insert("PowerCut".into());
    assert!(
        ["Image", "File", "FileSystem", "Walk", "AtFolder"].iter().all(|n| public.contains(*n))
    );
    let (mut missing, mut good) = (Vec::new(), 0);
    for (file, text) in files.iter().zip(&texts) {
        let (without, with) = without_example(text, &public);
        good += with;
        missing.extend(without.into_iter().map(|name| format!("{}: {name}", file.display())));
    }
    assert!(missing.is_empty(), "without an example:\n{}", missing.join("\n"));
    // Lists of methods (`src/methods.rs`) give each entry one; they are not counted.
    assert!(good > 120, "only {good} items were found");
}

#[test]
fn what_has_none_is_seen() {
    let text = [
        "/// Has one.\n/// ```\n/// x\n/// ```\npub struct A;\n\n",
        "impl A {\n    /// None.\n    pub fn b() {}\n}\n\n/// None.\npub fn c() {}\n",
        "pub struct Hidden;\nimpl Hidden {\n    pub fn d() {}\n}\n",
    ];
    let public = BTreeSet::from(["A".to_owned(), "c".to_owned()]);
    assert_eq!(without_example(&text.concat(), &public), (vec!["b".to_owned(), "c".to_owned()], 1));
}
