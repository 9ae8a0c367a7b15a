//! Scenario files with mistakes: all of them are reported at once, each with its line.

use steadfast_lab::LabError;
use steadfast_lab::scenario::{Scenario, keys};
use steadfast_setup::Setup;

const GOOD: &str = r#"
version = 2
name = "mine"
title = "Mine"

[workload]
iozone = "-t1 -s 64m -r 64k -i0"
quick_size = "8m"
risk_size = "1m"
cuts = 4

[device.disk]
kind = "ssd"

[[variant]]
name = "plain"
label = "Plain"
disk = "disk"
mount = "data=ordered"
"#;

fn mistakes(text: &str) -> String {
    match Scenario::parse(text, "my.toml") {
        Err(LabError::File(wrong)) => wrong.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_required_is_enough() {
    let scenario = Scenario::parse(GOOD, "my.toml").unwrap();
    assert_eq!(scenario.baseline(), "plain");
    assert_eq!((scenario.machine.cpus, scenario.about.as_str()), (4, ""));
}

#[test]
fn all_mistakes_are_reported_at_once_each_with_its_line() {
    let text = GOOD
        .replace("quick_size", "quik_size")
        .replace("cuts = 4", "cuts = \"four\"")
        .replace("kind = \"ssd\"", "kind = \"ssd\"\nprogram_us = -1\nreed_us = 3\nerase_ms = -2")
        .replace("disk = \"disk\"", "disk = \"dsk\"")
        .replace(
            "mount = \"data=ordered\"",
            "mount = \"data=orderd,comit=3\"\nmkfs = \"-z 3\"\nruns = 1",
        );
    let said = mistakes(&text);
    for part in [
        "my.toml cannot be used: 11 mistakes",
        "[workload] has no key `quik_size`",
        "did you mean `quick_size`?",
        "`quick_size` is missing in [workload]",
        "a whole number is needed here, not the text \"four\"",
        "[device.disk] has no key `reed_us`",
        "did you mean `read_us`?",
        "program_us = -1: must be between",
        "erase_ms = -2: must be between",
        "there is no [device.dsk]",
        "did you mean `disk`?",
        "mount option data=orderd: orderd is unknown: did you mean ordered?",
        "mount option comit=3: is unknown: did you mean commit=?",
        "my.toml:22:22",
        "-z",
        "[[variant]] has no key `runs`",
        "my.toml:10:8",
    ] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
    assert!(said.lines().all(|l| l.chars().count() <= 80), "{said}");
}

/// What needs a stack of devices was run on Steadfast's, under the kernel's name.
#[test]
fn the_kernels_file_systems_run_the_benchmark_or_files_alone() {
    let both = GOOD.to_owned()
        + "[[variant]]\nname = \"k\"\nlabel = \"K\"\ndisk = \"disk\"\nkernel = \"ext4\"\n";
    let dd = "[[workload.dd]]\ntest = \"w\"\noperands = \"if=/dev/zero of=/f count=1\"\n";
    let hdparm = "[[workload.hdparm]]\nline = \"-t /f\"\n";
    let random = "[[workload.random_read]]\ntest = \"r\"\nreads = 100\n";
    let iozone = "cuts = 4\npeers_size = \"1m\"\n";
    let files = "cuts = 4\nfiles = {}\n";
    let alone = "cuts = 4\n";
    let with = |own: &str, beside: &str| {
        let (head, rest) = both.split_once("cuts = 4\n").unwrap();
        let head = if own == iozone { head } else { &head[..head.find("iozone").unwrap()] };
        format!("{head}{own}{beside}{rest}")
    };
    let named = format!("{dd}variants = [\"plain\"]\n");
    for (own, beside) in [(iozone, ""), (iozone, &*named), (files, "")] {
        Scenario::parse(&with(own, beside), "my.toml").unwrap();
    }
    let does_not = |kind: &str| format!("`{kind}` does not run on a variant with `kernel`");
    let nothing = || "a variant with `kernel` runs `iozone`, or".to_owned();
    for (own, beside, said) in [
        (iozone, dd, does_not("dd")),
        (iozone, &*named.replace("plain", "k"), does_not("dd")),
        (iozone, hdparm, does_not("hdparm")),
        (iozone, random, does_not("random_read")),
        (files, dd, nothing()),
        (files, &*named, nothing()),
        (alone, dd, nothing()),
        (alone, &*(dd.to_owned() + random), nothing()),
    ] {
        let text = with(own, beside);
        assert!(mistakes(&text).contains(&said), "{text}\n{}", mistakes(&text));
    }
}

#[test]
fn what_is_missing_is_named_with_what_it_means() {
    let said = mistakes("version = 2");
    for key in ["name", "title", "workload", "device", "variant"] {
        assert!(said.contains(&format!("`{key}` is missing in the file")), "{said}");
    }
    assert!(said.contains("what is run"), "{said}");
    assert!(mistakes("name = mine").contains("name = mine"));
}

#[test]
fn mistakes_between_keys_are_found_at_reading() {
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        mistakes(&GOOD.replace(from, to))
    };
    assert!(with("version = 2", "version = 9").contains("version 9 is unknown"));
    assert!(with("kind = \"ssd\"", "kind = \"sdd\"").contains("did you mean `ssd`?"));
    assert!(with("-i0", "-q0x").contains("-q"));
    assert!(with("\"8m\"", "\"many\"").contains("not a size"));
    assert!(with("disk = \"disk\"", "disk = \"disk\"\njournal = \"disk\"").contains("same device"));
    assert!(with("mount =", "kernel = \"xfs\"\nmount =").contains("`peers_size` is missing"));
    assert!(with("name = \"mine\"", "name = \"../x\"").contains("is no name"));
    let twice = format!("{GOOD}\n[[variant]]\nname = \"plain\"\nlabel = \"\"\ndisk = \"disk\"");
    assert!(mistakes(&twice).contains("two variants are called `plain`"));
    let files = GOOD.replace("iozone = \"-t1 -s 64m -r 64k -i0\"", "files = { second = 1 }");
    let said = mistakes(&files);
    assert!(said.contains("did you mean `seconds`?"), "{said}");
    assert!(said.contains("`risk_size` belongs to `iozone`"), "{said}");
    let slow = "files = { seconds = 0.0, configs = 0 }";
    let said = mistakes(&GOOD.replace("iozone = \"-t1 -s 64m -r 64k -i0\"", slow));
    assert!(said.contains("from 0.1 to 3600") && said.contains("from 1 to 1000"), "{said}");
}

#[test]
fn one_mistake_does_not_hide_another() {
    let text = GOOD
        .replace("kind = \"ssd\"", "kind = \"ssd\"\nwrite_cache = \"volatil\"\nsectors = 0")
        .replace("mount =", "run = \"sped\"\nmount =");
    let figures = "\n[[published]]\ntest = \"rewrite\"\nkb_per_s = { plane = 1.0 }\n";
    let said = mistakes(&format!("{text}{figures}"));
    for part in ["did you mean `volatile`?", "sectors = 0", "`speed`?", "no variant `plane`"] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
}

#[test]
fn published_figures_have_a_source() {
    let figures = "\n[[published]]\ntest = \"initial wite\"\nkb_per_s = { plane = 1.0 }\n";
    let said = mistakes(&format!("{GOOD}{figures}"));
    for part in ["need their source", "did you mean `initial write`?", "did you mean `plain`?"] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
    let right = "\n[[published]]\ntest = \"rewrite\"\nkb_per_s = { plain = 1.0 }\n";
    let source =
        "\n[source]\ntitle = \"T\"\nauthor = \"A\"\nyear = 2014\naddress = \"example.org\"\n";
    let scenario = Scenario::parse(&format!("{GOOD}{source}{right}"), "my.toml").unwrap();
    assert_eq!(scenario.source.unwrap().to_string(), "A, T, 2014, example.org");
    // As version 1 wrote it.
    let old = GOOD.replace("version = 2", "version = 1\nsource = \"A, T\"") + right;
    assert_eq!(Scenario::parse(&old, "my.toml").unwrap().source.unwrap().to_string(), "A, T");
    let said = mistakes(&GOOD.replace("version = 2", "version = 2\nsource = \"A, T\""));
    assert!(said.contains("only in version 1"), "{said}");
}

/// Names become folders of recordings, rows of tables, words of commands.
#[test]
fn a_variant_has_a_plain_name() {
    for name in ["../out", "/tmp/out", "", "a b", "a/", "line\\nbreak"] {
        let said = mistakes(&GOOD.replace("name = \"plain\"", &format!("name = \"{name}\"")));
        assert!(said.contains("no name of a variant"), "{name}: {said}");
    }
}

#[test]
fn a_misspelt_scenario_is_recognised() {
    let said = Scenario::find("nvram-jounral").unwrap_err().to_string();
    assert!(said.contains("did you mean `nvram-journal`?"), "{said}");
}

#[test]
fn what_a_mount_by_fuse_is_not_for_is_refused() {
    let whole = std::fs::read_to_string("scenarios/data-at-risk.toml").unwrap();
    let of_it = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        Scenario::parse(&whole.replace(from, to), "s.toml").unwrap_err().to_string()
    };
    let wrong = of_it("\"writeback_cache\"", "\"writeback_cash\"");
    assert!(wrong.contains("did you mean writeback_cache?"), "{wrong}");
    let wrong = of_it("\"writeback_cache\"", "\"data=journal\"");
    assert!(wrong.contains("options of the file system stand in `mount`"), "{wrong}");
    let wrong = of_it("fuse = \"\"", "fuse = \"\"\nkernel = \"ext4\"");
    assert!(wrong.contains("not mounted by FUSE"), "{wrong}");
}

#[test]
fn what_comes_with_the_program_is_right() {
    let names: Vec<String> = Scenario::embedded().into_iter().map(|s| s.name).collect();
    // Each is found by the name of its file.
    let files = std::fs::read_dir("scenarios").unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    files.sort();
    assert_eq!(names, files);
}

#[test]
fn the_documentation_lists_every_key_and_its_example_is_right() {
    let docs = std::fs::read_to_string("../../docs/lab.md").unwrap();
    for line in keys::markdown().lines() {
        assert!(docs.contains(line), "docs/lab.md has not this line: {line}");
    }
    let example = docs.split("```").find_map(|part| part.strip_prefix("toml\nversion")).unwrap();
    Scenario::parse(&format!("version{example}"), "docs/lab.md").unwrap();
    let setup = docs.split("```").find_map(|part| part.strip_prefix("toml\n[device")).unwrap();
    let setup = Setup::parse(&format!("[device{setup}"), "docs/lab.md").unwrap();
    assert_eq!(setup.leaves(), ["left", "right"]);
}
