//! The tables of docs/gallery.md and gallery/README.md, made of the programs' files and of what
//! their runs reported.
//!
//! The first page says which programs lose what on the recorded disk: `answers`, and `found` for
//! what breaks a promise. The second has all: `settings`, each of the `findings`, and the
//! `versions`.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;

use super::program::{GalleryProgram, ProgramSetting};
use super::result_file;
use super::trial::posix;

/// Each program, and what is kept of its last run: null if it was not run.
pub type StoredResults<'a> = Vec<(&'a GalleryProgram, Value)>;

/// What is kept of all programs.
pub fn stored<'a>(
    programs: &'a [GalleryProgram],
    results: &Path,
) -> anyhow::Result<StoredResults<'a>> {
    let read = |program: &'a GalleryProgram| {
        let file = result_file(results, &program.folder);
        let shown = || file.display().to_string();
        if !file.exists() {
            return Ok((program, Value::Null));
        }
        let text = std::fs::read_to_string(&file).with_context(shown)?;
        Ok((program, serde_json::from_str(&text).with_context(shown)?))
    };
    programs.iter().map(read).collect()
}

/// One of the page's tables, as Markdown.
pub fn show(what: &str, kept: &StoredResults<'_>) -> anyhow::Result<String> {
    Ok(match what {
        "answers" => answers(kept),
        "settings" => settings(kept),
        "found" => found(kept),
        "findings" => findings(kept),
        "versions" => versions(kept),
        _ => bail!("--show takes answers, found, settings, findings or versions"),
    })
}

/// A setting, what was reported of it and of its control.
struct SettingRow<'a> {
    program: &'a GalleryProgram,
    setting: &'a ProgramSetting,
    run: &'a Value,
    control: &'a Value,
}

fn each<'a>(kept: &'a StoredResults<'_>) -> impl Iterator<Item = SettingRow<'a>> {
    kept.iter().flat_map(|(program, result)| {
        program.setting.iter().map(move |setting| {
            let all = result["settings"].as_array();
            let own = all.and_then(|all| all.iter().find(|one| one["name"] == *setting.name));
            let own = own.unwrap_or(&Value::Null);
            SettingRow { program, setting, run: &own["run"], control: &own["control"] }
        })
    })
}

/// Each setting is a row, with what its document promises.
fn answers(kept: &StoredResults<'_>) -> String {
    let head = "| program, setting | what it promises | wrong | control |\n|---|---|--:|--:|\n";
    let mut rows = String::from(head);
    for SettingRow { program, setting, run, control } in each(kept) {
        let named = match (setting.name.as_str(), setting.is_default) {
            ("default", _) => program.name.clone(),
            (name, true) => format!("{}, {name} (default)", program.name),
            (name, false) => format!("{}, {name}", program.name),
        };
        let said = format!("[{}]({})", setting.promise, setting.reference);
        rows.push_str(&row(&[named, said, wrong(run, control), of(control)]));
    }
    rows
}

/// Each setting is a row.
fn settings(kept: &StoredResults<'_>) -> String {
    let head = "\
| program | setting | instants | wrong | control | wrong by POSIX alone | its control |
|---|---|--:|--:|--:|--:|--:|
";
    let mut rows = String::from(head);
    for SettingRow { program, setting, run, control } in each(kept) {
        let (alone, control_alone) = (posix(run), posix(control));
        let cells = [
            program.name.clone(),
            setting.name.clone(),
            number(&run["cuts"]),
            wrong(run, control),
            of(control),
            wrong(alone, control_alone),
            of(control_alone),
        ];
        rows.push_str(&row(&cells));
    }
    rows
}

/// Each setting that breaks a promise on the recorded disk is a row, with what most of the wrong
/// states showed. A note that begins with "None" says that none is broken.
fn found(kept: &StoredResults<'_>) -> String {
    let head = "| program, setting | seen | which promise it breaks |\n|---|---|---|\n";
    let mut rows = String::from(head);
    for SettingRow { program, setting, run, .. } in each(kept) {
        let all = run["findings"].as_array().into_iter().flatten();
        let Some(most) = all.max_by_key(|finding| finding["states"].as_u64()) else { continue };
        let note = setting.note.as_deref().unwrap_or_default().trim();
        if !note.starts_with("None") {
            let name = format!("{}, {}", program.name, setting.name);
            rows.push_str(&row(&[name, seen(&most["what"]), note.to_owned()]));
        }
    }
    rows
}

/// Each thing that was found is a row.
fn findings(kept: &StoredResults<'_>) -> String {
    let head = "\
| program, setting | found | wrong states | what was seen | models that allow it | \
which promise it breaks |
|---|---|--:|---|---|---|
";
    let mut rows = String::from(head);
    for SettingRow { program, setting, run, .. } in each(kept) {
        let name = format!("{}, {}", program.name, setting.name);
        // Said once, of all that was found of the setting.
        let mut note = setting.note.as_deref();
        let disk = (&run["findings"], "on the recorded disk");
        for (list, place) in [disk, (&run["by_calls"]["findings"], "by POSIX alone")] {
            for finding in list.as_array().into_iter().flatten() {
                // What is wrong for the same reason is one finding.
                let also = finding["also"].as_array().into_iter().flatten();
                let seen = [&finding["what"]].into_iter().chain(also).map(seen);
                rows.push_str(&row(&[
                    name.clone(),
                    place.to_owned(),
                    number(&finding["states"]),
                    seen.collect::<Vec<_>>().join("; or "),
                    models(finding),
                    note.take().unwrap_or_default().trim().to_owned(),
                ]));
            }
        }
    }
    rows
}

/// What a judge has said.
fn seen(what: &Value) -> String {
    let what = text(what);
    what.strip_prefix("the judge ended with status 1: ").unwrap_or(&what).to_owned()
}

/// The models of file systems under which something can happen, of what was found by the calls.
fn models(finding: &Value) -> String {
    let names = |list: &str| -> Vec<&str> {
        let all = finding[list].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).filter(|name| *name != "posix").collect()
    };
    match (names("wrong_on"), names("right_on")) {
        _ if finding["model"].is_null() => "-".to_owned(),
        (wrong, right) if wrong.is_empty() && right.is_empty() => "not explored".to_owned(),
        (wrong, _) if wrong.is_empty() => "none that was explored".to_owned(),
        (wrong, _) => wrong.join(", "),
    }
}

/// Each program is a row.
fn versions(kept: &StoredResults<'_>) -> String {
    let mut rows = String::from("| program | version | from | day |\n|---|---|---|---|\n");
    for (program, result) in kept {
        let from = &program.install;
        let mut all: Vec<String> =
            from.apt.values().map(|package| format!("apt {package}")).collect();
        all.extend(from.pip.iter().map(|package| format!("pip {package}")));
        all.extend(from.npm.iter().map(|package| format!("npm {package}")));
        let own = |what: &str| format!("{what}, gallery/{}", program.folder);
        all.extend(from.go.then(|| own("Go")));
        all.extend(from.cargo.then(|| own("cargo")));
        all.extend(from.from.clone());
        let cells = [&program.name, &text(&result["version"]), &all.join("; ")];
        rows.push_str(&row(&[cells[0], cells[1], cells[2], &text(&result["day"])]));
    }
    rows
}

/// What the page must not leave as it is: a setting that was not run, and a finding of which nobody
/// says which promise it breaks.
pub fn faults(kept: &StoredResults<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    for SettingRow { program, setting, run, .. } in each(kept) {
        let mut fault =
            |what: &str| faults.push(format!("{}, {}: {what}", program.name, setting.name));
        if run.is_null() {
            fault("was not run");
            continue;
        }
        let is_zero = |report: &Value| report["bad_states"] == 0;
        let is_found = !(is_zero(run) && is_zero(posix(run)));
        match (is_found, &setting.note) {
            (true, None) => fault("was found, and no note says which promise it breaks"),
            (false, Some(_)) => fault("has a note, and nothing was found"),
            _ => {}
        }
    }
    faults
}

/// Cells of a row of Markdown.
fn row<S: AsRef<str>>(cells: &[S]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn number(of: &Value) -> String {
    of.as_u64().map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// What was wrong of how many states: in bold where anything was, with a `+` where time was up
/// before all were judged. A zero that its control shows too is no evidence.
fn wrong(report: &Value, control: &Value) -> String {
    let more = if report["not_explored"].is_null() { "" } else { "+" };
    let share = of(report) + more;
    match (report["bad_states"].as_u64(), control["bad_states"].as_u64()) {
        (Some(0), Some(0)) => share + ", no evidence",
        (Some(0), _) => share,
        (Some(_), _) => format!("**{share}**"),
        (None, _) => "-".to_owned(),
    }
}

/// What was wrong of how many.
fn of(report: &Value) -> String {
    format!("{}/{}", number(&report["bad_states"]), number(&report["states"]))
}

/// A word without the folder that a judge had for its tree, which is another one each time.
fn without_tree(word: &str) -> String {
    const TREE: &str = "/tree/";
    match (word.find("/tmp/steadfast-"), word.find(TREE)) {
        (Some(from), Some(to)) if from < to => word[..from].to_owned() + &word[to + TREE.len()..],
        _ => word.to_owned(),
    }
}

/// Text of others in a cell: on one line, and not taken for Markdown.
fn text(of: &Value) -> String {
    let words = of.as_str().unwrap_or("not run").split_whitespace().map(without_tree);
    let text = words.collect::<Vec<_>>().join(" ");
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn program() -> GalleryProgram {
        toml::from_str(
            "name = 'A'\nversion = ''\nrun = ''\njudge = ''\n[[setting]]\nname = 'b'\n\
             arguments = ''\npromise = 'all is kept'\nreference = 'https://a'\n",
        )
        .unwrap()
    }

    fn report(bad: u64, alone: u64) -> Value {
        let alone = json!({ "model": "posix", "states": 9, "bad_states": alone });
        let what = json!({ "states": bad, "what": "a | b\nc", "also": ["d"] });
        let by_calls = json!({ "reports": [alone], "findings": [] });
        let (cuts, not) = (4, json!({ "instants": 1 }));
        json!({
            "cuts": cuts, "states": 7, "bad_states": bad, "not_explored": not,
            "findings": if bad > 0 { vec![what] } else { vec![] }, "by_calls": by_calls,
        })
    }

    fn result(run: &Value, control: &Value) -> Value {
        json!({ "settings": [{ "name": "b", "run": run, "control": control }] })
    }

    #[test]
    fn a_finding_needs_a_note_and_a_note_a_finding() {
        let mut program = program();
        let of = |program: &GalleryProgram, run: (u64, u64)| {
            faults(&vec![(program, result(&report(run.0, run.1), &report(3, 2)))])
        };
        assert_eq!(of(&program, (0, 0)), [""; 0]);
        assert!(of(&program, (1, 0))[0].contains("no note"));
        assert!(faults(&vec![(&program, Value::Null)])[0].contains("not run"));
        program.setting[0].note = Some("c".to_owned());
        assert_eq!(of(&program, (1, 0)), [""; 0]);
        assert!(of(&program, (0, 0))[0].contains("has a note"));
    }

    #[test]
    fn rows_have_what_was_reported() {
        let program = program();
        let kept = vec![(&program, result(&report(2, 0), &report(3, 1)))];
        let row = "| A | b | 4 | **2/7+** | 3/7 | 0/9 | 1/9 |";
        assert_eq!(show("settings", &kept).unwrap().lines().nth(2), Some(row));
        let row = "| A, b | [all is kept](https://a) | **2/7+** | 3/7 |";
        assert_eq!(show("answers", &kept).unwrap().lines().nth(2), Some(row));
        let row = "| A, b | on the recorded disk | 2 | a \\| b c; or d | - |  |";
        assert_eq!(show("findings", &kept).unwrap().lines().nth(2), Some(row));
        let row = "| A, b | a \\| b c |  |";
        assert_eq!(show("found", &kept).unwrap().lines().nth(2), Some(row));
        let mut warned = self::program();
        warned.setting[0].note = Some("None: the documents say so".to_owned());
        let kept_warned = vec![(&warned, result(&report(2, 0), &report(3, 1)))];
        assert_eq!(show("found", &kept_warned).unwrap().lines().nth(2), None);
        assert_eq!(text(&json!("no \"/tmp/steadfast-mount-a/7-b/tree/db\"")), "no \"db\"");
        assert!(show("versions", &kept).unwrap().contains("| A | not run |  | not run |"));
        assert!(show("x", &kept).is_err());
        let zeros = vec![(&program, result(&report(0, 0), &report(1, 0)))];
        let row = "| 0/7+ | 1/7 | 0/9, no evidence | 0/9 |";
        assert!(show("settings", &zeros).unwrap().contains(row));
    }
}
