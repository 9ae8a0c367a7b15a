//! What a program can check of the project's style, beyond rustfmt and clippy, and of its
//! documents ([`pages`]).

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::{pages, string_errors};

/// More lines than this are a design fault.
const LINES_MAX: usize = 1000;
/// More lines than this should be a reason to think.
const LINES_MANY: usize = 600;
const COLUMNS_MAX: usize = 100;

/// Not to be found in the sources. In pieces, so that this file does not find itself.
const FORBIDDEN: [&str; 6] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("#[", "ignore"),
    concat!("allow(", "dead_code"),
    // It is O_SYNC: rustix has one value for both. Ours are in vfs/src/raw_flags.rs.
    concat!("OFlags::", "DSYNC"),
];

/// What was found: `path:line: what`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TidyFindings {
    pub faults: Vec<String>,
    pub warnings: Vec<String>,
}

/// Reads all Rust sources of the workspace.
pub fn check(root: &Path) -> anyhow::Result<TidyFindings> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "fuzz", "tests"] {
        let folder = root.join(folder);
        if folder.is_dir() {
            rust_files(&folder, &mut files)?;
        }
    }
    files.sort();
    let mut findings = TidyFindings::default();
    for file in files {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("reading {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        check_file(&name, &text, &mut findings);
    }
    findings.faults.extend(string_errors::check(root)?);
    findings.faults.extend(missing_homes(root)?);
    findings.faults.extend(pages::check(root)?);
    Ok(findings)
}

pub fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in folder.read_dir().with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default();
            if !["target", "corpus", "artifacts"].iter().any(|skip| name == *skip) {
                rust_files(&path, found)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Files that CONTRIBUTING.md names as the place for something, and that are not there. Names in
/// capitals stand for any.
fn missing_homes(root: &Path) -> anyhow::Result<Vec<String>> {
    let page = "CONTRIBUTING.md";
    let text = std::fs::read_to_string(root.join(page)).context(page)?;
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        ["crates/", "xtask/", "docs/"].iter().any(|folder| word.starts_with(folder))
            && !word.contains(|c: char| c.is_ascii_uppercase() || c.is_whitespace() || c == '*')
    };
    let missing = quoted.filter(is_path).filter(|path| !root.join(path).exists());
    Ok(missing.map(|path| format!("{page}: there is no {path}")).collect())
}

fn check_file(name: &str, text: &str, findings: &mut TidyFindings) {
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.faults.push(format!("{name}: {lines} lines, more than {LINES_MAX}: split it"));
    } else if lines > LINES_MANY {
        findings.warnings.push(format!("{name}: {lines} lines, more than {LINES_MANY}"));
    }
    for (i, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            let what = format!("{columns} columns, more than {COLUMNS_MAX}");
            findings.faults.push(format!("{name}:{}: {what}", i + 1));
        }
        let comment = line.trim_start();
        let is_documentation = comment.starts_with("///") || comment.starts_with("//!");
        if is_documentation && line.contains(concat!("(\"SKIP", "PED")) {
            let what = "what an example prints is not read: it cannot skip itself";
            findings.faults.push(format!("{name}:{}: {what}", i + 1));
        }
        for forbidden in FORBIDDEN {
            if line.contains(forbidden) {
                findings.faults.push(format!("{name}:{}: {forbidden}...", i + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_tidy() {
        assert_eq!(check(&crate::root()).unwrap().faults, Vec::<String>::new());
    }

    #[test]
    fn faults_are_found_where_they_are() {
        let mut found = TidyFindings::default();
        let wide = "x".repeat(101);
        let skips = concat!("/// println!(\"SKIP", "PED: no root\");");
        let text = format!("fine\n    {}\n{wide}\n{skips}\n", concat!("todo", "!()"));
        check_file("a.rs", &text, &mut found);
        check_file("b.rs", &"\n".repeat(1001), &mut found);
        check_file("c.rs", &"\n".repeat(601), &mut found);
        let expected = [
            concat!("a.rs:2: todo", "!(...").to_owned(),
            "a.rs:3: 101 columns, more than 100".to_owned(),
            "a.rs:4: what an example prints is not read: it cannot skip itself".to_owned(),
            "b.rs: 1001 lines, more than 1000: split it".to_owned(),
        ];
        assert_eq!(found.faults, expected);
        assert_eq!(found.warnings, ["c.rs: 601 lines, more than 600"]);
    }
}
