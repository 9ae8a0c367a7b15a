//! The two runs of a setting: as it is, and without its syncs.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::install::ProgramPlace;
use super::program::{GalleryProgram, ProgramSetting};

/// Time for exploring a setting, and its control, of which one finding is enough.
const BUDGET: [&str; 2] = if cfg!(test) { ["6s", "3s"] } else { ["30s", "20s"] };
/// Longest that a run may take, with all that comes before the exploration.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs a setting and its control: what `steadfast crash run --json` reports of both.
pub fn both(
    place: &ProgramPlace,
    steadfast: &std::path::Path,
    program: &GalleryProgram,
    setting: &ProgramSetting,
) -> anyhow::Result<Value> {
    let mut reports = Vec::new();
    for is_control in [false, true] {
        let begun = Instant::now();
        let report = crash_run(place, steadfast, program, setting, is_control)
            .with_context(|| format!("{}, control: {is_control}", setting.name))?;
        println!(
            "    {}{}: {} of {} states wrong, by POSIX alone {} of {}, {:.0} s",
            setting.name,
            if is_control { ", control" } else { "" },
            report["bad_states"],
            report["states"],
            posix(&report)["bad_states"],
            posix(&report)["states"],
            begun.elapsed().as_secs_f64(),
        );
        reports.push(report);
    }
    let control = reports.pop();
    Ok(json!({ "name": setting.name, "run": reports.pop(), "control": control }))
}

/// What was explored of the calls alone, by what POSIX promises.
pub fn posix(report: &Value) -> &Value {
    let all = report["by_calls"]["reports"].as_array();
    let found = all.and_then(|all| all.iter().find(|report| report["model"] == "posix"));
    found.unwrap_or(&Value::Null)
}

/// The file that a run is recorded in, in the program's place.
fn recording(arguments: &str, is_control: bool) -> String {
    let words = arguments.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let kind = if is_control { "control" } else { "run" };
    [kind].into_iter().chain(words).collect::<Vec<_>>().join("-") + ".crash"
}

fn crash_run(
    place: &ProgramPlace,
    steadfast: &std::path::Path,
    program: &GalleryProgram,
    setting: &ProgramSetting,
    is_control: bool,
) -> anyhow::Result<Value> {
    let own = setting.control.as_ref().filter(|_| is_control);
    let arguments = own.unwrap_or(&setting.arguments);
    let with = |command: &str| format!("{command} {arguments}").trim().to_owned();
    let mut command = place.command(steadfast);
    command.args(["crash", "run", "--json", "--budget", BUDGET[usize::from(is_control)]]);
    command.arg("--record").arg(recording(arguments, is_control));
    command.args(program.options.iter().chain(&setting.options));
    if let Some(setup) = &program.setup {
        command.arg("--setup").arg(with(setup));
    }
    command.arg("--judge").arg(with(&program.judge)).arg("--");
    if is_control {
        let mut preload = std::ffi::OsString::from("LD_PRELOAD=");
        preload.push(&place.without_sync);
        command.arg("env").arg(preload);
    }
    command.args(["sh", "-c"]).arg(with(&program.run));
    let mut timed = place.command("timeout");
    timed.args(["--kill-after=20", &LIMIT.as_secs().to_string()]).arg(command.get_program());
    let out = timed.args(command.get_args()).output().context("timeout")?;
    let said = String::from_utf8_lossy(&out.stderr);
    // 1: something was found.
    if !matches!(out.status.code(), Some(0 | 1)) {
        bail!("steadfast crash run: {}: {}", out.status, said.trim());
    }
    let report: Value = serde_json::from_slice(&out.stdout).context("its report")?;
    let ended = report["recorded"]["program"].as_str().unwrap_or_default();
    if ended != "ended with status 0" {
        bail!("the program {ended}: {}", said.trim());
    }
    if report["troubles"].as_array().is_some_and(|troubles| !troubles.is_empty()) {
        bail!("not all could be judged: {}", report["troubles"]);
    }
    if report["recorded"]["lines"] == 0 {
        bail!("the program has acknowledged nothing: {}", said.trim());
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::super::install::install;
    use super::super::program::GalleryProgram;
    use super::*;

    /// The program that the tests have built lies beside the folder of this one.
    fn steadfast() -> Option<std::path::PathBuf> {
        let own = std::env::current_exe().ok()?;
        Some(own.parent()?.parent()?.join("steadfast")).filter(|program| program.is_file())
    }

    #[test]
    fn sqlite_loses_nothing_and_without_its_syncs_it_does() {
        let Some(steadfast) = steadfast().filter(|_| rustix::process::geteuid().is_root()) else {
            println!("SKIPPED: needs root, and the program steadfast in target");
            return;
        };
        let root = crate::root();
        let mut all = GalleryProgram::all(&root.join(super::super::FOLDER)).unwrap();
        let program = all.iter_mut().find(|program| program.folder == "sqlite").unwrap();
        program.options =
            ["--linger", "0.2", "--cuts", "40", "--model", "none"].map(str::to_owned).into();
        let place = install(&root, program).unwrap();
        let setting = program.setting.iter().find(|s| s.arguments == "delete extra all").unwrap();
        let found = both(&place, &steadfast, program, setting).unwrap();
        assert_eq!(found["run"]["bad_states"], 0, "{found:#}");
        assert_ne!(found["control"]["bad_states"], 0, "{found:#}");
        assert_eq!(found["run"]["recorded"]["lines"], 12, "{found:#}");
    }
}
