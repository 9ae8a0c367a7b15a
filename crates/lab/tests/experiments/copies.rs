//! dd and hdparm in scenarios: devices, files on variants, figures beside published ones.

use steadfast_lab::results::{CopyRow, Results, SpeedRow, TimingRow, summary};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::table::{self, Layout};
use steadfast_lab::{RunOptions, report, run};

const SCENARIO: &str = r#"
version = 2
name = "copies"
title = "dd and hdparm"

[source]
title = "t"
author = "a"
year = 2001
address = "x"

[workload]
cuts = 0

[[workload.dd]]
test = "write"
operands = "if=/dev/zero of=/f bs=64k count=64 conv=fsync"
quick = "if=/dev/zero of=/f bs=64k count=32 conv=fsync"

[[workload.dd]]
test = "cold read"
operands = "if=/f of=/dev/null bs=64k"

[[workload.dd]]
test = "warm read"
operands = "if=/f of=/dev/null bs=64k"
cold = false

[[workload.dd]]
test = "full"
operands = "if=/dev/zero of=/full bs=512"
before = ["if=/dev/zero of=/most bs=1M count=20"]

[[workload.dd]]
test = "raw"
operands = "if=device:card of=/dev/null bs=64k count=64"

[[workload.hdparm]]
line = "-Tt card"

[[workload.hdparm]]
line = "-t /g"
before = ["if=/dev/zero of=/g bs=1M count=8"]

[device.disk]
kind = "ssd"
sectors = 65536

[device.card]
kind = "nvram"

[[variant]]
name = "internal"
label = "on the disk"
disk = "disk"

[[variant]]
name = "external"
label = "on the card"
disk = "disk"
journal = "card"

[[published]]
test = "hdparm -t card"
kb_per_s = { card = 318351.36 }

[[published]]
test = "write"
kb_per_s = { external = 1000.0 }
"#;

fn results() -> Results {
    let scenario = Scenario::parse(SCENARIO, "copies").unwrap();
    run(&scenario, &RunOptions::default(), &|_, _| ()).unwrap()
}

#[test]
fn copies_and_timings_have_their_rows() {
    let results = results();
    let run = results.only();
    let mb = |test: &str, variant: &str| {
        let row = run.of::<SpeedRow>().find(|r| r.test == test && r.variant == variant);
        row.unwrap_or_else(|| panic!("{test}, {variant}")).kb_per_s / 1024.0
    };
    assert_eq!(run.of::<SpeedRow>().count(), 10);
    for variant in ["internal", "external"] {
        let (cold, warm) = (mb("cold read", variant), mb("warm read", variant));
        assert!(warm > 2.0 * cold && cold > 1.0, "{variant}: {cold} and {warm}");
        assert!(mb("full", variant) > 1.0);
        let ended = |n: &&steadfast_lab::results::Note| {
            n.text.starts_with(&format!("{variant}: full: dd: error writing '/full'"))
        };
        assert_eq!(results.notes.iter().filter(ended).count(), 1, "{:?}", results.notes);
    }
    // The card by itself: as fast whatever stands on it.
    assert_eq!(mb("raw", "internal"), mb("raw", "external"));
    let published = run.of::<SpeedRow>().find(|r| r.published_kb_per_s.is_some()).unwrap();
    assert_eq!((published.test.as_str(), published.variant.as_str()), ("write", "external"));
    // The card once, the file on each variant.
    let timings: Vec<(&str, Option<&str>)> =
        run.of::<TimingRow>().map(|t| (t.test.as_str(), t.variant.as_deref())).collect();
    let expected = [
        ("hdparm -t /g", Some("internal")),
        ("hdparm -T card", None),
        ("hdparm -t card", None),
        ("hdparm -t /g", Some("external")),
    ];
    assert_eq!(timings, expected);
    let timed: Vec<&TimingRow> = run.of().collect();
    let card = timed[2];
    assert_eq!((card.bytes, card.published_kb_per_s), (256 << 20, Some(318_351.36)));
    assert!(timed[0].bytes == 8 << 20 && timed.iter().all(|t| t.kb_per_s > 1024.0));
    let command = &results.command;
    assert!(command.contains("dd if=/dev/zero of=/f") && command.contains("hdparm -Tt card"));
}

#[test]
fn they_are_printed_everywhere_and_are_reproducible() {
    let results = results();
    let json = summary::json(&results).unwrap();
    assert_eq!(json, summary::json(&self::results()).unwrap());
    assert_eq!(Results::read(&json).unwrap(), results);
    let text = table::text(&results, Layout::default());
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    for part in ["hdparm -t card", "310.89", "cold read", "internal: hdparm -t /g"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(report::html(&results).contains("hdparm -t card"));
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    for (from, to, message) in [
        ("-Tt card", "-Tz card", "-z: hdparm's options here"),
        ("-Tt card", "-Tt crad", "there is no device `crad`"),
        ("device:card", "device:crad", "there is no device `crad`"),
        ("if=/f of=/dev/null", "if=/f", "of= is missing"),
        ("bs=64k\"\ncold = false", "bs=0\"\ncold = false", "invalid number"),
        ("if=/dev/zero of=/most", "if=host:/etc/passwd of=/most", "no files of this machine"),
        ("test = \"hdparm -t card\"", "test = \"hdparm -t disk\"", "no test `hdparm -t disk`"),
        ("{ card = ", "{ disc = ", "there is no variant `disc`"),
        ("cold = false", "warm = true", "no key `warm`"),
        ("test = \"warm read\"", "test = \"cold read\"", "two tests are called `cold read`"),
    ] {
        let text = SCENARIO.replacen(from, to, 1);
        assert_ne!(text, SCENARIO, "{from}");
        let wrong = Scenario::parse(&text, "copies").unwrap_err().to_string();
        assert!(wrong.contains(message), "{message}: {wrong}");
    }
    // The mark is below the word, and nothing else is.
    for (to, marked) in [("bs=1Mx count=1", "bs=1Mx"), ("obs=0512 bs=0", "bs=0")] {
        let text = SCENARIO.replacen("bs=64k count=64 conv=fsync", to, 1);
        let wrong = Scenario::parse(&text, "copies").unwrap_err().to_string();
        let lines: Vec<&str> = wrong.lines().collect();
        let mark = lines.iter().position(|line| line.contains('^')).unwrap();
        let at = lines[mark].find('^').unwrap();
        let length = lines[mark].matches('^').count();
        assert_eq!(&lines[mark - 1][at..at + length], marked, "{wrong}");
    }
    let named = SCENARIO.replacen("test = \"write\"", "test = \"hdparm -t card\"", 1);
    assert!(Scenario::parse(&named, "copies").unwrap_err().to_string().contains("is hdparm's"));
}

/// A fault is a device's own: requests are late, or fail, and the copy says so.
#[test]
fn a_devices_fault_reaches_the_copy() {
    let text = |fault: &str| {
        format!(
            "version = 2\nname = \"faulty\"\ntitle = \"t\"\nabout = \"a\"\n[workload]\ncuts = 0\n\
             [[workload.dd]]\ntest = \"read\"\n\
             operands = \"if=device:@disk of=/dev/null bs=4k count=50\"\n\
             [device.disk]\nkind = \"ram\"\nsize = \"64m\"\n{fault}\n\
             [[variant]]\nname = \"v\"\nlabel = \"v\"\ndisk = \"disk\"\n"
        )
    };
    let ran = |fault: &str| {
        let scenario = Scenario::parse(&text(fault), "faulty").unwrap();
        run(&scenario, &RunOptions::default(), &|_, _| {})
    };
    let seconds = |fault: &str| -> f64 {
        let results = ran(fault).unwrap();
        results.all::<CopyRow>().map(|copy| copy.seconds).sum()
    };
    let (well, late) = (seconds(""), seconds("fault = { effect = \"delay\", delay_ms = 20.0 }"));
    // Each of the 50 reads.
    assert!(well < 0.1 && (1.0..1.1).contains(&late), "{well} s, {late} s");
    let skipped = seconds("fault = { effect = \"delay\", delay_ms = 20.0, skip = 40, count = 5 }");
    assert!((0.1..0.2).contains(&skipped), "{skipped} s");
    let failed = ran("fault = { effect = \"fail\", on = \"read\" }").unwrap_err().to_string();
    assert!(failed.contains("Input/output error"), "{failed}");
    for (fault, said) in [
        ("fault = { effect = \"fai\" }", "there is no effect `fai`"),
        ("fault = { on = \"read\" }", "`effect` is missing"),
        ("fault = { effect = \"lost\", on = \"writes\" }", "there are no requests `writes`"),
        ("fault = { effect = \"lost\", delay_ms = 1.0 }", "`delay_ms` is for the effect `delay`"),
        ("fault = { effect = \"lost\", count = 0 }", "`count` must be from 1"),
        ("media = \"paper\"", "paper"),
    ] {
        let wrong = Scenario::parse(&text(fault), "faulty").unwrap_err().to_string();
        assert!(wrong.contains(said), "{fault}: {wrong}");
    }
}
