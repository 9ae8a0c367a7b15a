//! The kinds of devices that scenarios can name, as text, Markdown and JSON: what `lab devices`
//! prints, and the documents' tables.

use std::fmt::Write;

use serde_json::{Value, json};
use steadfast_devices::model::KINDS;
use steadfast_devices::model::parameters::{ModelKind, Parameter};

use crate::wrap::wrapped;

/// One line for each kind.
pub fn list() -> String {
    let mut text = String::new();
    for kind in KINDS {
        // OK to ignore: writing to a string does not fail.
        let _ = writeln!(text, "{:7}{}", kind.name, titled(kind));
    }
    text
}

/// A kind with each of its parameters: `name = default unit`, what it is, where that is from.
pub fn text(kind: &ModelKind) -> String {
    let mut text = format!("{}: {}\n", kind.name, titled(kind));
    text += &wrapped(&format!("Modelled: {}.", kind.physics), 0);
    let defaults = defaults(kind);
    for p in kind.parameters {
        let unit = if p.unit.is_empty() { String::new() } else { format!(" {}", p.unit) };
        let default = match is_given(&defaults[p.name]) {
            true => format!("{}{unit}", defaults[p.name]),
            false => "not given".to_owned(),
        };
        text.push('\n');
        text += &wrapped(&format!("{} = {default}", p.name), 0);
        text += &wrapped(&p.summary(), 4);
        if let Some(words) = words(p) {
            text += &wrapped(&format!("One of: {words}."), 4);
        }
        text += &wrapped(&format!("Source: {}.", p.source), 4);
    }
    text
}

/// All kinds with their parameters, as tables of Markdown.
pub fn markdown() -> String {
    let mut text =
        String::from("| kind | what | defaults describe | modelled |\n|---|---|---|---|\n");
    for kind in KINDS {
        let preset = if kind.preset.is_empty() { "-" } else { kind.preset };
        let _ =
            writeln!(text, "| `{}` | {} | {preset} | {} |", kind.name, kind.title, kind.physics);
    }
    for kind in KINDS {
        let _ = writeln!(text, "\n**`{}`**, {}\n", kind.name, titled(kind));
        text += "| parameter | default | unit | what | source |\n|---|---|---|---|---|\n";
        let defaults = defaults(kind);
        for p in kind.parameters {
            let words = words(p).map(|w| format!(" One of: {w}.")).unwrap_or_default();
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {}{words} | {} |",
                p.name,
                cell(&defaults[p.name]),
                p.unit,
                p.summary(),
                p.source
            );
        }
    }
    text
}

/// All kinds with their parameters, for programs.
pub fn json() -> Value {
    let parameter = |p: &Parameter, defaults: &Value| {
        json!({
            "name": p.name,
            "default": defaults[p.name],
            "unit": p.unit,
            "text": p.summary(),
            "words": (p.words)(),
            "source": p.source.to_string(),
            "assumed": matches!(p.source, steadfast_devices::model::parameters::Source::Assumed(_)),
        })
    };
    let kinds: Vec<Value> = KINDS
        .iter()
        .map(|kind| {
            let defaults = defaults(kind);
            let parameters: Vec<Value> =
                kind.parameters.iter().map(|p| parameter(p, &defaults)).collect();
            json!({
                "kind": kind.name,
                "title": kind.title,
                "preset": kind.preset,
                "physics": kind.physics,
                "parameters": parameters,
            })
        })
        .collect();
    json!({ "format": "steadfast-devices", "version": 1, "kinds": kinds })
}

fn titled(kind: &ModelKind) -> String {
    match kind.preset {
        "" => kind.title.to_owned(),
        preset => format!("{} ({preset})", kind.title),
    }
}

fn defaults(kind: &ModelKind) -> Value {
    // OK to unwrap: parameters are numbers, words and lists of them.
    serde_json::to_value((kind.default)()).unwrap()
}

fn words(p: &Parameter) -> Option<String> {
    let words = (p.words)();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Whether anything is said: not by a list or a table without values.
fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(values) => values.values().any(|v| is_given(v) && *v != json!(0.0)),
        _ => true,
    }
}

/// A value without what Markdown takes for the end of a cell.
fn cell(value: &Value) -> String {
    let text = match value {
        value if !is_given(value) => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_described_within_80_columns() {
        assert!(list().lines().all(|l| l.chars().count() <= 80), "{}", list());
        for kind in KINDS {
            let text = text(kind);
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
            for p in kind.parameters {
                assert!(text.contains(&format!("\n{} = ", p.name)), "{text}");
                assert!(markdown().contains(&format!("| `{}` |", p.name)));
            }
        }
        assert!(text(&KINDS[0]).contains("One of: off, on, lying."));
        assert_eq!(json()["kinds"][0]["parameters"][1]["default"], 286_749_488);
    }
}
