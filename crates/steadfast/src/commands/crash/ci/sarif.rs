//! What was found as SARIF 2.1.0, which code scanning reads (OASIS, "Static Analysis Results
//! Interchange Format").

use std::io;

use serde_json::{Value, json};

use super::findings::{CallPlace, Finding, Rule, Source};
use super::results::Results;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// By which version of it findings are recognised. It is kept by whoever has uploaded them.
const FINGERPRINT: &str = "steadfastFinding/v1";

/// The text of the file.
///
/// # Errors
/// None that is known.
pub fn text(results: &Results<'_>) -> io::Result<String> {
    let rules: Vec<Value> = Rule::ALL
        .iter()
        .map(|rule| {
            json!({
                "id": rule.name(),
                "shortDescription": { "text": rule.in_words() },
                "defaultConfiguration": { "level": "error" },
                "properties": { "tags": ["durability", "power cut"] },
            })
        })
        .collect();
    let left: Vec<Value> = results
        .left
        .iter()
        .map(|left| json!({ "level": "note", "message": { "text": left } }))
        .collect();
    let found: Vec<Value> = results.findings.iter().map(|f| of(f, results)).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Steadfast crash",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "invocations": [{
                "executionSuccessful": !results.has_troubles(),
                "toolExecutionNotifications": left,
            }],
            "columnKind": "unicodeCodePoints",
            "results": found,
        }],
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&log)?))
}

fn of(finding: &Finding<'_>, results: &Results<'_>) -> Value {
    let program = || results.file.clone().unwrap_or_else(|| results.program_name.clone());
    let source = finding.call.as_ref().and_then(CallPlace::source);
    let (place, line) = source.unwrap_or_else(|| (program(), 1));
    let seen = match finding.source {
        Source::States(_) => "states of the recorded disk",
        Source::Calls(_) => "the calls alone",
        Source::Reaction => "a call that was made to fail",
    };
    let mut result = json!({
        "ruleId": finding.rule.name(),
        "ruleIndex": Rule::ALL.iter().position(|rule| *rule == finding.rule),
        "kind": "fail",
        "level": "error",
        "message": { "text": finding.message() },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&place) },
            "region": { "startLine": line },
        } }],
        "partialFingerprints": { FINGERPRINT: finding.fingerprint() },
        "properties": {
            "seenIn": seen,
            "on": finding.everywhere(),
            "states": finding.states,
            "fix": finding.fix,
            "show": finding.show,
            "details": finding.details(results.run),
        },
    });
    if let Some(baseline) = results.baseline {
        let known = baseline.known(&finding.fingerprints);
        result["baselineState"] = if known.is_some() { "unchanged" } else { "new" }.into();
    }
    // All have them, or none.
    if results.baseline.is_some() || results.counts().0 > 0 {
        let why = results.baseline.and_then(|baseline| baseline.known(&finding.fingerprints));
        let why = why.and_then(|known| known.why.as_deref()).unwrap_or("it is in the baseline");
        let known = json!({ "kind": "external", "status": "accepted", "justification": why });
        result["suppressions"] = if finding.known { json!([known]) } else { json!([]) };
    }
    result
}

/// A path as a reference of RFC 3986: relative, if it is.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let path = path
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") });
    std::iter::once(scheme.into()).chain(path).collect()
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn a_path_is_a_reference() {
        assert_eq!(uri("src/a b%\u{fc}:.sh"), "src/a%20b%25%C3%BC%3A.sh");
        assert_eq!(uri("/src/a.c"), "file:///src/a.c");
    }
}
