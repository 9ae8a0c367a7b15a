//! `cargo xtask bench volume`: mirrors beside what they are made of, in one process.

use std::path::{Path, PathBuf};

use steadfast_statistics::load::Load;

use super::print_machine;
use crate::{step, value};

pub(super) fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut rounds, mut folder, mut md) = (7u32, root.join("target/bench"), false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => rounds = value("--rounds", &mut args)?.parse()?,
            "--folder" => folder = PathBuf::from(value("--folder", &mut args)?),
            "--md" => md = true,
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    anyhow::ensure!(rounds > 0, "--rounds is at least 1");
    if md {
        return super::md::run(root, rounds.into());
    }
    std::fs::create_dir_all(&folder)?;
    let example = ["--release", "--quiet", "--package", "steadfast-volume", "--example", "speed"];
    if !step::run(step::cargo(root, &["build"]).args(example))? {
        return Ok(false);
    }
    let before = Load::now();
    let mut speed = step::cargo(root, &["run"]);
    speed.args(example).arg("--").arg(&folder).arg(rounds.to_string());
    let good = step::run(&mut speed)?;
    print_machine(before);
    Ok(good)
}
