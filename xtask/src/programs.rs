//! `cargo xtask programs`: git, sqlite3, tar, cargo and fio on a mount, by each of its transports.

use std::path::Path;

use steadfast_suite::programs::PROGRAMS;
use steadfast_suite::{Setup, Target, TargetKind};

use crate::step::step;
use crate::uring::FuseUring;
use crate::{conformance, packages, value};

const IMAGE_BYTES: u64 = 1 << 30;

/// Runs the programs; whether all of them were content.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut on, mut options, mut filter) = ("steadfast", "", "");
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--on" => on = value("--on", &mut args)?,
            "--options" => options = value("--options", &mut args)?,
            "--filter" => filter = value("--filter", &mut args)?,
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    let kind = conformance::kind(root, on)?;
    step("packages", || packages::install(&[]));
    let run_all = |transport: &str| {
        let options: Vec<&str> =
            [options, transport].into_iter().filter(|o| !o.is_empty()).collect();
        let (options, by) = (options.join(","), if transport.is_empty() { "" } else { ", " });
        let chosen = PROGRAMS.iter().filter(|(name, _)| name.contains(filter));
        chosen.fold(true, |good, (name, program)| {
            let name = format!("{name} on {on}{by}{transport}");
            step(&name, || one(&kind, &options, root, *program)) && good
        })
    };
    if !matches!(kind, TargetKind::Steadfast(_)) || options.contains("transport=") {
        return Ok(run_all(""));
    }
    let by_device = run_all("transport=fuse");
    match FuseUring::on() {
        Ok(_switched) => Ok(run_all("transport=uring") && by_device),
        Err(why) => {
            println!("==> SKIPPED: the same over FUSE io_uring: {why}");
            Ok(by_device)
        }
    }
}

fn one(
    kind: &TargetKind,
    options: &str,
    root: &Path,
    program: fn(&Path, &Path) -> steadfast_suite::Result<()>,
) -> anyhow::Result<bool> {
    let mut setup = Setup::new(IMAGE_BYTES);
    setup.options = options.to_owned();
    let mut target = Target::new(kind.clone(), &setup)?;
    program(&target.mountpoint(), root)?;
    target.unmount()?;
    match target.check()? {
        None => Ok(true),
        Some(found) => anyhow::bail!("after the program, {found}"),
    }
}
