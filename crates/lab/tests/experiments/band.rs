//! What a source leaves unknown: every combination is measured, and each published figure stands
//! beside the range. And what a source says in words.

use steadfast_lab::results::{
    BandRow, CombinationRow, Note, PublishedRow, Results, SentenceRow, Verdict,
};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{LabError, RunOptions, Watch, run_seeds};

use crate::golden::assert_tables;
use crate::schema::assert_described;

const SMALL: &str = r#"
version = 2
name = "small"
title = "A small scenario"
[source]
title = "T"
author = "A"
year = 2014
address = "-"
[workload]
iozone = "-o -c -e -t2 -T -I -s 512k -r 64k -i0"
quick_size = "512k"
risk_size = "512k"
cuts = 0
[device.disk]
kind = "hdd"
[device.card]
kind = "nvram"
[scheduler.deadline]
policy = "deadline"
[band]
device = "disk"
drives = ["cheetah-15k6", "savvio-15k2"]
parameters.disk.write_cache = ["off", "on"]
schedulers = ["deadline"]
mount.internal = ["data=writeback,journal_async_commit"]
variants = ["internal", "external"]
[[variant]]
name = "internal"
label = "internal"
disk = "disk"
mount = "data=ordered"
[[variant]]
name = "external"
label = "external"
disk = "disk"
journal = "card"
mount = "data=ordered"
[[variant]]
name = "other"
label = "not the source's"
disk = "disk"
mount = "data=journal"
[[published]]
test = "initial write"
kb_per_s = { internal = 10000.0, external = 27500.0 }
by_construction = { internal = "put in" }
[[published]]
test = "rewrite"
kb_per_s = { internal = 10000.0, external = 100000.0 }
explained = "it is another disk"
[[sentence]]
name = "ahead"
said = "It is 1.5 to 100 times as fast."
check = "ahead"
variants = ["external"]
over = ["internal"]
tests = ["initial write", "rewrite"]
factor = 1.5
factor_most = 100.0
reason = "as it is said"
[[sentence]]
name = "level"
said = "They are the same."
check = "comparable"
variants = ["external", "internal"]
tests = ["initial write"]
factor = 1.1
reason = "within a tenth"
explained = "the journal's seeks"
[[sentence]]
name = "wear"
said = "It wears."
explained = "wear is not modelled"
by_construction = "nothing wears"
"#;

fn measured(text: &str) -> Results {
    let scenario = Scenario::parse(text, "small").unwrap();
    let watch = Watch { progress: &|_, _| (), stop: &false.into() };
    let options = RunOptions { band: true, ..RunOptions::default() };
    run_seeds(&scenario, &options, &[1], &watch).unwrap()
}

fn mistakes(text: &str) -> String {
    match Scenario::parse(text, "small") {
        Err(LabError::File(wrong)) => wrong.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_combination_is_measured_once_and_the_first_is_the_scenario() {
    let results = measured(SMALL);
    assert_tables("band", &results);
    assert_described(&results);
    let all: Vec<&CombinationRow> = results.all().collect();
    // Two drives, two caches, with and without a scheduler, two options of one variant.
    assert_eq!((all.len(), all[0].settings.as_str()), (16, "as given"));
    let rows: Vec<&BandRow> = results.all().collect();
    assert!(rows.iter().all(|r| r.variant != "other" && r.combinations == 16), "{rows:?}");
    for ratio in rows.iter().filter_map(|r| r.ratio.as_ref()) {
        assert!((ratio.lowest..=ratio.highest).contains(&ratio.default), "{ratio:?}");
    }
}

/// Nothing of the source stands on the other disk: what it may be changes nothing that is measured.
#[test]
fn what_changes_nothing_is_left_out_and_said() {
    let text = SMALL
        .replace("[device.card]", "[device.other]\nkind = \"hdd\"\n[device.card]")
        .replace(
            "label = \"not the source's\"\ndisk = \"disk\"",
            "label = \"not the source's\"\ndisk = \"other\"",
        )
        .replace("parameters.disk", "parameters.other.write_cache = [\"on\"]\nparameters.disk");
    let results = measured(&text);
    assert_eq!(results.all::<CombinationRow>().count(), 16);
    let said = |note: &&Note| note.text.contains("change nothing that is measured");
    assert!(results.notes.iter().any(|n| said(&n)), "{:?}", results.notes);
}

#[test]
fn only_combinations_that_fit_are_a_range() {
    // The first row fits with no combination, and so there is no range; then with some.
    let text = SMALL.replace("variants = [\"int", "fit = [\"rewrite\"]\nvariants = [\"int");
    let none = measured(&text);
    assert_eq!(none.all::<BandRow>().count(), 0);
    assert!(none.all::<CombinationRow>().all(|c| !c.fits));
    let near = text.replace("fit = [", "fit_percent = 100.0\nfit = [");
    let some = measured(&near);
    let fitting = some.all::<CombinationRow>().filter(|c| c.fits).count() as u64;
    assert!(some.all::<BandRow>().all(|r| r.combinations == fitting && fitting > 0));
}

#[test]
fn what_a_source_says_is_checked_or_said_to_be_untested() {
    let results = measured(SMALL);
    let verdicts: Vec<(&str, Verdict)> =
        results.sentences.iter().map(|s: &SentenceRow| (s.found(), s.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            ("agrees", Verdict::Agrees),
            ("DISAGREES", Verdict::Disagrees),
            ("not checked", Verdict::NotMeasured)
        ]
    );
    let why = |row: &PublishedRow| (row.by_construction.clone(), row.explained.clone());
    let rewrite = results.published.iter().find(|r| r.test == "rewrite").unwrap();
    assert_eq!(why(rewrite).1.as_deref(), Some("it is another disk"));
    assert!(results.published.iter().any(|r| why(r).0.as_deref() == Some("put in")));
}

#[test]
fn a_band_names_what_is_there() {
    let text = SMALL
        .replace("schedulers = [\"deadline\"]", "schedulers = [\"cfq\"]")
        .replace("\"savvio-15k2\"]", "\"savvio\"]\nfit = []\nunknowns = 3")
        .replace(
            "write_cache = [\"off\", \"on\"]",
            "write_cache = [\"of\"]\nparameters.card.rpm = []",
        )
        .replace("mount.internal = [\"data", "mount.intern = [\"data")
        .replace("variants = [\"internal\", \"external\"]", "variants = [\"extern\"]");
    let said = mistakes(&text);
    for part in [
        "there is no `cfq`",
        "there is no drive `savvio`",
        "`fit` is empty",
        "[band] has no key `unknowns`",
        "`write_cache` = of: unknown variant `of`",
        "it is empty",
        "there is no variant `intern`",
        "there is no `extern`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let many = (0..999).map(|n| format!("{n}.5")).collect::<Vec<_>>().join(", ");
    let huge =
        SMALL.replace("write_cache = [", &format!("seek_variation_ms = [{many}]\nwrite_cache = ["));
    assert!(mistakes(&huge).contains("combinations, at most 1000 are run"), "{}", mistakes(&huge));
    let alone =
        SMALL.replace("variants = [\"internal\", \"external\"]", "variants = [\"internal\"]");
    assert!(mistakes(&alone).contains("`variants` names one"));
    let risk = SMALL.replace(
        "disk = \"disk\"\njournal = \"card\"\nmount = \"data=ordered\"\n",
        "disk = \"disk\"\njournal = \"card\"\nmount = \"data=ordered\"\nrun = \"risk\"\n",
    );
    assert_ne!(risk, SMALL);
    assert!(mistakes(&risk).contains("the speed of `external` is not measured"));
    let untested = SMALL.replace("explained = \"wear is not modelled\"\n", "");
    assert!(mistakes(&untested).contains("`explained` is missing in [[sentence]]"));
    let no_reason = SMALL.replace("reason = \"as it is said\"\n", "");
    assert!(mistakes(&no_reason).contains("`reason` is missing in [[sentence]]"));
    let no_band = Scenario::find("ext3-data-modes").unwrap();
    let watch = Watch { progress: &|_, _| (), stop: &false.into() };
    let options = RunOptions { band: true, ..RunOptions::default() };
    let refused = run_seeds(&no_band, &options, &[1], &watch).unwrap_err().to_string();
    assert!(refused.contains("--band: it has no [band]"), "{refused}");
}
