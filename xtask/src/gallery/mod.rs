//! `cargo xtask gallery`: real programs under power cuts, as they are shipped.
//!
//! Each folder of `gallery` is a program: how it is installed, what it promises, its settings, and
//! the scripts that drive and judge it ([`program`]). Each setting is run twice by `steadfast crash
//! run`: as it is, and as a control whose syncs do nothing. A setting of which nothing is found
//! shows something only if its control is found: the page marks a zero of which that is not so.
//! What the runs report is kept in gallery/results; docs/gallery.md and
//! gallery/README.md are made of that ([`page`]).

mod install;
mod page;
mod program;
mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use steadfast_suite::TargetKind;

use crate::{conformance, step, tables, value};
use program::GalleryProgram;

/// The programs' folder.
const FOLDER: &str = "gallery";
/// What the runs have reported.
const RESULTS: &str = "gallery/results";

/// Runs the named programs, or all, and makes the page anew; whether each was as the page explains.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut on, mut show, mut names) = ("steadfast", None, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--on" => on = value("--on", &mut args)?,
            "--show" => show = Some(value("--show", &mut args)?),
            _ if arg.starts_with('-') => bail!("unexpected argument '{arg}'; see cargo xtask help"),
            _ => names.push(arg.as_str()),
        }
    }
    let all = GalleryProgram::all(&root.join(FOLDER))?;
    if let Some(what) = show {
        ensure!(names.is_empty(), "--show {what} is of all programs");
        print!("{}", page::show(what, &page::stored(&all, &root.join(RESULTS))?)?);
        return Ok(true);
    }
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|p| p.folder == **name)) {
        bail!("there is no {FOLDER}/{unknown}/program.toml");
    }
    ensure!(rustix::process::geteuid().is_root(), "gallery needs root: it installs packages");
    let TargetKind::Steadfast(steadfast) = conformance::kind(root, on)? else {
        bail!("--on takes steadfast or steadfast:PATH here");
    };
    let chosen = all.iter().filter(|p| names.is_empty() || names.contains(&p.folder.as_str()));
    let mut good = true;
    for program in chosen {
        good &= step::step(&program.name, || one(root, &steadfast, program));
    }
    let faults = page::faults(&page::stored(&all, &root.join(RESULTS))?);
    for fault in &faults {
        println!("    {fault}");
    }
    tables::remake(root, "xtask gallery")?;
    Ok(good && faults.is_empty())
}

/// Runs all settings of a program, and keeps what was reported.
fn one(root: &Path, steadfast: &Path, program: &GalleryProgram) -> anyhow::Result<bool> {
    let place = install::install(root, program)?;
    let version = first_line(&mut place.shell(&program.version))?;
    println!("    {} {version}", program.name);
    let mut settings = Vec::new();
    for setting in &program.setting {
        settings.push(trial::both(&place, steadfast, program, setting)?);
    }
    let kept = json!({
        "program": program.name,
        "version": version,
        "steadfast": first_line(Command::new(steadfast).arg("--version"))?,
        "day": first_line(Command::new("date").args(["-u", "+%F"]))?,
        "settings": settings,
    });
    keep(&root.join(RESULTS), &program.folder, &kept)?;
    Ok(true)
}

/// Where the result of a program is kept.
fn result_file(results: &Path, folder: &str) -> PathBuf {
    results.join(format!("{folder}.json"))
}

fn keep(results: &Path, folder: &str, kept: &Value) -> anyhow::Result<()> {
    std::fs::create_dir_all(results).with_context(|| results.display().to_string())?;
    let (file, text) = (result_file(results, folder), serde_json::to_string_pretty(kept)?);
    std::fs::write(&file, text + "\n").with_context(|| file.display().to_string())
}

/// The first line that a command prints.
fn first_line(command: &mut Command) -> anyhow::Result<String> {
    let out = command.output().with_context(|| format!("{command:?}"))?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = text.lines().next().filter(|_| out.status.success());
    let line = line.with_context(|| {
        format!("{command:?}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr))
    });
    Ok(line?.trim().to_owned())
}
