//! What was found as JUnit XML: a suite for each thing that was judged, in it a test that all of it
//! was, and a failed one for each finding.

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::findings::Finding;
use super::results::{JudgedPart, Results};
use crate::terminal::harmless;

/// The text of the file.
pub fn text(results: &Results<'_>) -> Result<String> {
    let mut report = Report::new("steadfast crash run");
    for part in &results.parts {
        let mut suite = TestSuite::new(harmless(&part.name));
        suite.add_property(Property::new("program", harmless(&results.program)));
        if let Some(client) = results.run.about.get("client") {
            suite.add_property(Property::new("client", harmless(client)));
        }
        if let Some(path) = part.recording {
            suite.add_property(Property::new("recording", path.display().to_string()));
        }
        suite.add_test_case(all_judged(part));
        if let Some(why) = &part.program_failed {
            let mut error = TestCaseStatus::non_success(NonSuccessKind::Error);
            error.set_message(why.clone());
            suite.add_test_case(test("the program ended well", &harmless(&part.name), error));
        }
        for finding in results.findings.iter().filter(|finding| part.is_of(finding)) {
            suite.add_test_case(of(finding, part, results));
        }
        report.add_test_suite(suite);
    }
    let gone = results.fixed();
    if !gone.is_empty() {
        let mut suite = TestSuite::new("baseline");
        for what in gone {
            suite.add_test_case(test(&what, "baseline", TestCaseStatus::success()));
        }
        report.add_test_suite(suite);
    }
    let text = report.to_string().context("JUnit")?;
    // What is no character of XML (https://www.w3.org/TR/xml/#charsets), but for controls, which
    // the library leaves out.
    Ok(text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
}

fn test(name: &str, class: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    // Readers group by it; dots are theirs.
    case.set_classname(format!("steadfast.{}", class.replace('.', " ")));
    case
}

/// Whether all states were judged.
fn all_judged(part: &JudgedPart<'_>) -> TestCase {
    let status = match (part.troubles.first(), &part.left) {
        (Some(trouble), _) => {
            let mut error = TestCaseStatus::non_success(NonSuccessKind::Error);
            error.set_message(harmless(&format!("could not be judged: {trouble}")));
            error.set_description(harmless(&part.troubles.join("\n")));
            error
        }
        (None, Some(left)) => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_message(left.clone());
            skipped
        }
        (None, None) => TestCaseStatus::success(),
    };
    test("all states were judged", &harmless(&part.name), status)
}

fn of(finding: &Finding<'_>, part: &JudgedPart<'_>, results: &Results<'_>) -> TestCase {
    let status = match finding.known {
        true => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_message(format!("known: {}", finding.message()));
            skipped
        }
        false => {
            let mut failure = TestCaseStatus::non_success(NonSuccessKind::Failure);
            failure.set_type(finding.rule.name());
            failure.set_message(finding.message());
            failure.set_description(finding.details(results.run));
            failure
        }
    };
    test(&harmless(&finding.title), &harmless(&part.name), status)
}
