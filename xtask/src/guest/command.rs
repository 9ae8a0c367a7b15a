//! `cargo xtask guest`: a shell script in a guest, to look at something by hand.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::{Guest, GuestNvdimm, NVDIMM_MODULES};
use crate::{packages, value};

const MINUTES: u64 = 10;

/// Runs the script; whether it succeeded.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut modules, mut programs, mut scripts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut memory, mut processors, mut minutes) = (1024, 2, MINUTES);
    let (mut nvdimm_file, mut nvdimm_mib, mut dax) = (None, 256, true);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--module" => modules.push(value("--module", &mut args)?),
            "--program" => programs.push(program(value("--program", &mut args)?)?),
            "--memory" => memory = value("--memory", &mut args)?.parse()?,
            "--processors" => processors = value("--processors", &mut args)?.parse()?,
            "--minutes" => minutes = value("--minutes", &mut args)?.parse()?,
            "--nvdimm" => nvdimm_file = Some(PathBuf::from(value("--nvdimm", &mut args)?)),
            "--nvdimm-as-it-is" => dax = false,
            "--nvdimm-mib" => nvdimm_mib = value("--nvdimm-mib", &mut args)?.parse()?,
            option if option.starts_with('-') => {
                anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help")
            }
            script => scripts.push(script),
        }
    }
    let [script] = scripts.as_slice() else {
        anyhow::bail!("guest needs one script; see cargo xtask help")
    };
    if nvdimm_file.is_some() {
        modules.splice(..0, NVDIMM_MODULES);
    }
    let guest = Guest {
        modules: &modules,
        programs: &programs,
        script,
        memory,
        processors,
        nvdimm: nvdimm_file.map(|file| GuestNvdimm { file, mib: nvdimm_mib, dax }),
        qemu: &[],
        limit: Duration::from_secs(60 * minutes),
    };
    let answer = guest.run(root, |line| println!("{line}"))?;
    if answer.status != 0 {
        eprintln!("the script's exit status is {}", answer.status);
    }
    Ok(answer.status == 0)
}

/// A path, or the name of a program that is installed.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    packages::find(name).with_context(|| format!("no program {name} is installed"))
}
