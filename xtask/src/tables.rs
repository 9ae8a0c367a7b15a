//! The tables of README.md, docs/*.md and gallery/README.md, made by the commands that stand above
//! them.
//!
//! A table stands between two comments:
//!
//! ```text
//! <!-- table: steadfast lab run nvram-journal --full --seeds 8 -->
//! ...
//! <!-- /table -->
//! ```
//!
//! `table quick:` marks those that take seconds; CI makes them and fails if they differ.
//! Figures that take longer are kept in docs/results, as the program wrote them ([`RESULTS`]), and
//! tables are made of those in no time: so CI compares these too. What is not there yet is left
//! out.
//! The program is `steadfast` (built now) or `xtask`. What begins with `|` or `*` stays as it is,
//! everything else is put into a code block; with `console` after `quick` the command stands above
//! it, behind a `$`, as in a terminal; with `excerpt` the block is of some of the lines, in their
//! order, which somebody has chosen.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::{answers, step, value};

/// Results that are kept: the file in docs/results, the command that writes it, and what that
/// needs.
const RESULTS: [(&str, &str, &str); 8] = [
    (
        "nvram-journal-full.json",
        "steadfast lab run nvram-journal --full --seeds 8 --cuts 0 --json -",
        "",
    ),
    (
        "nvram-journal-band.json",
        "steadfast lab run nvram-journal --full --band --cuts 0 --json -",
        "",
    ),
    ("nvram-journal.json", "steadfast lab run nvram-journal --json -", ""),
    ("data-at-risk.json", "steadfast lab run data-at-risk --json -", "root"),
    ("ext3-data-modes.json", "steadfast lab run ext3-data-modes --cuts 400 --json -", ""),
    ("emmc-transactional.json", "steadfast lab run emmc-transactional --cuts 400 --json -", ""),
    ("ramdisk-mirror.json", "steadfast lab run ramdisk-mirror --band --json -", ""),
    ("nvdimm-dax.json", "steadfast lab run nvdimm-dax --json -", ""),
];
/// Their folder.
pub const FOLDER: &str = "docs/results";

const BEGIN: &str = "<!-- table";
const END: &str = "<!-- /table -->";

/// What is asked for.
#[derive(Default)]
struct TablesOptions {
    /// Write nothing; say what differs.
    check: bool,
    /// Only the quick ones.
    quick: bool,
    /// Make the results that are kept anew first.
    full: bool,
    /// The program is there.
    built: bool,
    /// Only tables and results whose command contains this.
    filter: String,
}

/// Makes the tables anew, or compares them; whether all is well.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let mut asked = TablesOptions::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--check" => asked.check = true,
            "--quick" => asked.quick = true,
            "--full" => asked.full = true,
            "--built" => asked.built = true,
            "--answers" => {
                print!("{}", answers::table(root)?);
                return Ok(true);
            }
            "--kept" => {
                print!("{}", kept());
                return Ok(true);
            }
            "--filter" => value("--filter", &mut rest)?.clone_into(&mut asked.filter),
            _ => bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    all(root, &asked)
}

/// The results that are kept, as a table of Markdown.
fn kept() -> String {
    let row = |(file, command, needs): &(&str, &str, &str)| {
        let needs = if needs.is_empty() { "-" } else { needs };
        format!("| `{file}` | `{command}` | {needs} |\n")
    };
    let rows: String = RESULTS.iter().map(row).collect();
    format!("| file | command | needs |\n|---|---|---|\n{rows}")
}

/// Compares the quick tables, as CI does, with the program that the tests have built.
pub fn check_quick(root: &Path) -> anyhow::Result<bool> {
    all(root, &TablesOptions { check: true, quick: true, built: true, ..TablesOptions::default() })
}

/// Makes those anew whose command contains `filter`, with programs that are built.
pub fn remake(root: &Path, filter: &str) -> anyhow::Result<bool> {
    all(root, &TablesOptions { built: true, filter: filter.into(), ..TablesOptions::default() })
}

fn all(root: &Path, asked: &TablesOptions) -> anyhow::Result<bool> {
    let build =
        || step::run(&mut step::cargo(root, &["build", "--quiet", "--package", "steadfast"]));
    if !asked.built && !build()? {
        return Ok(false);
    }
    if asked.full {
        for (file, command, _) in RESULTS.iter().filter(|(_, c, _)| c.contains(&asked.filter)) {
            keep(root, file, command)?;
        }
        // They are part of the program.
        if !build()? {
            return Ok(false);
        }
    }
    let mut good = true;
    for path in pages(root)? {
        let text = std::fs::read_to_string(&path)?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let mut changed = Vec::new();
        let new = remade(&text, &mut |table| {
            // With --full the filter is for the results.
            let chosen = asked.full || table.command.contains(&asked.filter);
            if (asked.quick && !table.quick) || !chosen {
                return Ok(None);
            }
            if let Some(file) = missing(root, &table.command) {
                println!("    {shown}: left as it is, {file} was not made (tables --full)");
                return Ok(None);
            }
            println!("    {shown}: {}", table.command);
            let made = made(root, table)?;
            if made != table.body {
                changed.push(difference(&table.body, &made));
            }
            Ok(Some(made))
        })
        .with_context(|| shown.clone())?;
        if changed.is_empty() {
            continue;
        }
        if asked.check {
            good = false;
            for difference in changed {
                println!("    {shown} is not what the program prints: {difference}");
            }
            println!("    cargo xtask tables makes it anew");
        } else {
            std::fs::write(&path, new)?;
            println!("    {shown}: written");
        }
    }
    Ok(good)
}

/// Runs a command and keeps what it prints, with the day.
fn keep(root: &Path, file: &str, command: &str) -> anyhow::Result<()> {
    println!("    {FOLDER}/{file}: {command}");
    let day = Command::new("date").args(["-u", "+%F"]).output().context("date")?;
    let day = String::from_utf8(day.stdout).context("date")?;
    let text = with_day(&printed(root, command)?, day.trim())?;
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(file), text).with_context(|| file.to_owned())
}

/// The document with the day on which it was made, after the program's version.
fn with_day(json: &str, day: &str) -> anyhow::Result<String> {
    let line = json.lines().find(|line| line.trim_start().starts_with("\"program\": "));
    let line = line.context("the document does not say which program wrote it")?;
    Ok(json.replacen(line, &format!("{line}\n  \"day\": \"{day}\","), 1))
}

/// The kept results that a command shows and that are not there.
fn missing(root: &Path, command: &str) -> Option<String> {
    let kept = |word: &String| word.starts_with(FOLDER) && !root.join(word).exists();
    shlex::split(command)?.into_iter().find(kept)
}

/// README.md, the pages of docs, the one that lists the results, and the gallery's.
fn pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut pages: Vec<PathBuf> =
        ["README.md", "docs/results/README.md", "gallery/README.md"].map(|p| root.join(p)).into();
    for entry in std::fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// A table as it stands in a page.
struct Table {
    quick: bool,
    console: bool,
    excerpt: bool,
    command: String,
    body: String,
}

/// The text with the tables that `make` gives; `None` leaves one as it is.
fn remade(
    text: &str,
    make: &mut dyn FnMut(&Table) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        out.push_str(line);
        let Some(head) = line.trim_end().strip_prefix(BEGIN) else { continue };
        let (kind, command) = head
            .strip_suffix("-->")
            .and_then(|head| head.split_once(": "))
            .with_context(|| format!("'{}' names no command", line.trim_end()))?;
        let mut body = String::new();
        loop {
            let line = lines.next().with_context(|| format!("{command}: no {END}"))?;
            if line.trim_end() == END {
                break;
            }
            body.push_str(line);
        }
        let is = |word: &str| kind.split_whitespace().any(|w| w == word);
        let (quick, console, excerpt) = (is("quick"), is("console"), is("excerpt"));
        let table = Table { quick, console, excerpt, command: command.trim().into(), body };
        out.push_str(&make(&table)?.unwrap_or(table.body));
        out.push_str(END);
        out.push('\n');
    }
    Ok(out)
}

/// What a command prints, as it stands in a page.
fn made(root: &Path, table: &Table) -> anyhow::Result<String> {
    let text = printed(root, &table.command)?;
    if table.excerpt {
        excerpt(table, &text)?;
        return Ok(table.body.clone());
    }
    Ok(in_page(table, text.trim_end()))
}

/// That the lines of a block are lines of the text, in their order. They cannot be made anew.
fn excerpt(table: &Table, text: &str) -> anyhow::Result<()> {
    let mut lines = text.lines();
    let own = table.body.lines().filter(|line| !line.starts_with("```") && !line.trim().is_empty());
    for line in own {
        if !lines.any(|printed| printed.trim_end() == line.trim_end()) {
            bail!("{}: it does not print this line, or not there: '{line}'", table.command);
        }
    }
    Ok(())
}

fn in_page(table: &Table, text: &str) -> String {
    match (table.console, text.starts_with(['|', '*'])) {
        (true, _) => format!("```console\n$ {}\n{text}\n```\n", table.command),
        (false, true) => format!("\n{text}\n\n"),
        (false, false) => format!("```\n{text}\n```\n"),
    }
}

/// What a command prints.
fn printed(root: &Path, command: &str) -> anyhow::Result<String> {
    let mut words = shlex::split(command).context("a quote that nothing ends")?.into_iter();
    let program = match words.next().as_deref() {
        Some("steadfast") => crate::arguments::target(root).join("debug/steadfast"),
        // By its name: building the tests makes it anew, while this one runs.
        Some("xtask") => crate::arguments::target(root).join("debug/xtask"),
        other => bail!("'{}' is no program of ours", other.unwrap_or("")),
    };
    let output = Command::new(program)
        .args(words)
        .current_dir(root)
        // Whoever makes it, and in whatever terminal.
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| command.to_owned())?;
    if !output.status.success() {
        bail!("{command}: {}", output.status);
    }
    String::from_utf8(output.stdout).context("its output is no text")
}

/// The first line in which two texts differ.
fn difference(old: &str, new: &str) -> String {
    let mut pairs = old.lines().zip(new.lines());
    match pairs.find(|(old, new)| old != new) {
        Some((old, new)) => format!("'{old}' is now '{new}'"),
        None => format!("it had {} lines and has {}", old.lines().count(), new.lines().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_and_replaced() {
        let page = "a\n<!-- table quick: steadfast x -->\nold\n<!-- /table -->\nb\n\
            <!-- table: steadfast y -->\nkept\n<!-- /table -->\n";
        let mut seen = Vec::new();
        let new = remade(page, &mut |t| {
            seen.push((t.quick, t.command.clone(), t.body.clone()));
            Ok(t.quick.then(|| "new\n".to_owned()))
        });
        let new = new.unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(seen[0], (true, "steadfast x".to_owned(), "old\n".to_owned()));
        assert_eq!(seen[1], (false, "steadfast y".to_owned(), "kept\n".to_owned()));
        let none = &mut |_: &Table| Ok(None);
        assert!(remade("<!-- table: steadfast y -->\n", none).is_err());
        assert!(remade("<!-- table -->\n<!-- /table -->\n", none).is_err());
        assert_eq!(difference("a\nb", "a\nc"), "'b' is now 'c'");
    }

    #[test]
    fn what_is_printed_stands_as_a_table_a_block_or_a_transcript() {
        let of = |head: &str, text: &str| {
            let mut shown = String::new();
            let page = format!("<!-- table {head}: steadfast x -->\n<!-- /table -->\n");
            remade(&page, &mut |table| {
                shown = in_page(table, text);
                Ok(None)
            })
            .unwrap();
            shown
        };
        assert_eq!(of("quick", "| a |"), "\n| a |\n\n");
        assert_eq!(of("quick", "a"), "```\na\n```\n");
        assert_eq!(of("quick console", "a"), "```console\n$ steadfast x\na\n```\n");
    }

    #[test]
    fn an_excerpt_is_of_lines_in_their_order() {
        let of = |body: &str| {
            let body = format!("```\n{body}\n```\n");
            let command = "steadfast x".to_owned();
            excerpt(
                &Table { quick: true, console: false, excerpt: true, command, body },
                "a\nb\nc\n",
            )
        };
        assert!(of("a\nc").is_ok() && of("").is_ok());
        for wrong in ["c\na", "a\na", "d"] {
            assert!(of(wrong).unwrap_err().to_string().contains("does not print"), "{wrong}");
        }
    }

    #[test]
    fn results_are_kept_with_their_day_and_may_be_missing() {
        let json = "{\n  \"version\": 3,\n  \"program\": \"0.1.0\",\n  \"scenario\": \"a\"\n}\n";
        let kept = with_day(json, "2026-01-02").unwrap();
        let value: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!((&value["day"], &value["scenario"]), (&"2026-01-02".into(), &"a".into()));
        assert!(with_day("{}", "2026-01-02").is_err());
        let root = tempfile::tempdir().unwrap();
        let command = "steadfast lab show docs/results/a.json --format markdown";
        assert_eq!(missing(root.path(), command).as_deref(), Some("docs/results/a.json"));
        std::fs::create_dir_all(root.path().join(FOLDER)).unwrap();
        std::fs::write(root.path().join("docs/results/a.json"), json).unwrap();
        assert_eq!(missing(root.path(), command), None);
    }
}
