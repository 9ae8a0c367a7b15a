//! `cargo xtask release --dry-run`: everything that a release consists of, made and looked at;
//! nothing is published.

mod bill;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::step::{self, step};
use crate::{deb, packages, publish, value};

/// A program that needs nothing of the system that it is copied to.
const STATIC: &str = "x86_64-unknown-linux-musl";
/// Starts of the program that are timed.
const STARTS: usize = 21;
const SUMS: &str = "SHA256SUMS";

/// Makes all of it in `target/release-files`, or in the folder that `--folder` names.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let (mut is_dry, mut folder) = (false, root.join("target/release-files"));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--dry-run" => is_dry = true,
            "--folder" => folder = value("--folder", &mut args)?.into(),
            _ => bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    ensure!(
        is_dry,
        "only a dry run is done here: --dry-run. To publish, say cargo publish --workspace, and \
         hand out what the dry run has made"
    );
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let version = version(root)?;
    let mut good = step("CHANGELOG.md has the version", || has_section(root, &version));
    good &= step("crates can be published", || {
        let faults = publish::check(root)?;
        faults.iter().for_each(|fault| println!("    {fault}"));
        Ok(publish::package(root)? && faults.is_empty())
    });
    good &= step("Debian package", || {
        let args = ["build", "--release", "--locked", "--package", "steadfast"];
        ensure!(step::run(&mut step::cargo(root, &args))?, "the program was not built");
        let program = root.join("target/release/steadfast");
        size_of(&deb::make(root, &program, &folder, deb::Packing::Small)?)
    });
    good &= step("static program", || static_program(root, &folder, &version));
    good &= step("bill of materials", || {
        let file = folder.join(format!("steadfast-{version}.cdx.json"));
        fs::write(&file, bill::of_program(root, STATIC)?)?;
        size_of(&file)
    });
    good &= step("checksums", || sums(&folder));
    println!("{}", folder.display());
    Ok(good)
}

fn version(root: &Path) -> Result<String> {
    let metadata = publish::metadata(root)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut program = packages.filter(|package| package["name"] == "steadfast");
    let version = program.next().and_then(|package| package["version"].as_str());
    Ok(version.context("cargo does not know the program's version")?.to_owned())
}

/// Whether the changelog says what is new in it.
fn has_section(root: &Path, version: &str) -> Result<bool> {
    let text = fs::read_to_string(root.join("CHANGELOG.md"))?;
    let heading = format!("## [{version}]");
    let is_there = text.lines().any(|line| line.starts_with(&heading));
    if !is_there {
        println!("    CHANGELOG.md has no section '{heading}'");
    }
    Ok(is_there)
}

fn static_program(root: &Path, folder: &Path, version: &str) -> Result<bool> {
    ensure!(packages::find("rustup").is_some(), "rustup is missing, which has {STATIC}");
    let add = ["300", "rustup", "target", "add", STATIC];
    ensure!(step::run(Command::new("timeout").args(add).current_dir(root))?, "no {STATIC}");
    let args = ["build", "--release", "--locked", "--package", "steadfast", "--target", STATIC];
    ensure!(step::run(&mut step::cargo(root, &args))?, "the program was not built");
    let built = root.join("target").join(STATIC).join("release/steadfast");
    let file = folder.join(format!("steadfast-{version}-{STATIC}"));
    ensure!(
        step::run(Command::new("strip").arg("--strip-unneeded").arg("-o").args([&file, &built]))?,
        "it was not stripped"
    );
    let headers = Command::new("readelf").arg("--program-headers").arg(&file).output()?;
    let headers = String::from_utf8_lossy(&headers.stdout).into_owned();
    ensure!(headers.contains("LOAD"), "readelf does not know it");
    ensure!(!headers.contains("INTERP"), "it needs a loader, and so libraries of the system");
    println!("    starts in {:.1} ms (median of {STARTS})", start(&file)?.as_secs_f64() * 1e3);
    size_of(&file)
}

/// How long the program takes to say its version.
fn start(program: &Path) -> Result<Duration> {
    let once = || {
        let begun = Instant::now();
        let out = Command::new(program).arg("--version").output()?;
        ensure!(out.status.success(), "{} does not run", program.display());
        Ok(begun.elapsed())
    };
    let mut times = (0..STARTS).map(|_| once()).collect::<Result<Vec<Duration>>>()?;
    times.sort();
    Ok(times[STARTS / 2])
}

fn size_of(file: &Path) -> Result<bool> {
    let mb = fs::metadata(file)?.len() as f64 / 1e6;
    println!("    {}: {mb:.1} MB", file.file_name().unwrap_or_default().display());
    Ok(true)
}

/// SHA-256 of all that is handed out, as `sha256sum --check` reads them.
fn sums(folder: &Path) -> Result<bool> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(PathBuf::from(entry?.file_name())))
        .collect::<Result<_>>()?;
    files.sort();
    let out = Command::new("sha256sum").arg("--").args(&files).current_dir(folder).output()?;
    ensure!(out.status.success(), "sha256sum: {}", String::from_utf8_lossy(&out.stderr));
    fs::write(folder.join(SUMS), &out.stdout)?;
    step::run(Command::new("sha256sum").args(["--check", "--quiet", SUMS]).current_dir(folder))
}
