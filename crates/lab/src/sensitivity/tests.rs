use std::sync::atomic::AtomicBool;

use super::*;

const SMALL: &str = r#"
version = 1
name = "small"
title = "A small scenario"
about = "For a test."
[workload]
iozone = "-o -c -e -t2 -T -I -s 4g -r 64k -i0"
quick_size = "1m"
risk_size = "512k"
cuts = 0
[device.disk]
kind = "hdd"
[device.card]
kind = "nvram"
[band]
device = "disk"
drives = ["savvio-15k2"]
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
"#;

fn measured() -> Sensitivity {
    let scenario = Scenario::parse(SMALL, "small").unwrap();
    let options = Options { full: false, size: Some("512k".into()), seed: 3, only: None };
    let watch = Watch { progress: &|_, _| {}, stop: &AtomicBool::new(false) };
    run(&scenario, &options, &watch).unwrap()
}

#[test]
fn a_slow_disk_is_seen_and_a_card_is_not() {
    let found = measured();
    assert!(!found.partial);
    assert_eq!(found.size, "512k");
    let effect = |parameter: &str, to: &str| {
        let fits = |e: &&ChangeEffect| e.change.parameter == parameter && e.change.to == to;
        found.effects.iter().find(fits).unwrap_or_else(|| panic!("{parameter} = {to}"))
    };
    // A journal on a second disk is slower than on a card: the program shows it.
    let second = effect("device", "a second disk");
    let write = &found.ratios[0];
    assert!(second.moved(write).unwrap() < -0.1, "{:?} {:?}", second.ratios[0], write);
    // The internal journal is not concerned by the card: its figures are those without.
    assert_eq!(second.ratios.len(), found.ratios.len());
    assert!(effect("drive", "savvio-15k2").most(&found.ratios).is_some());
    let of_card = |c: &&String| c.contains("'card', the journal's device");
    let card = found.conclusions.iter().find(of_card).unwrap();
    assert!(card.contains("move of external nothing by more than 1 %"), "{card}");
    assert!(card.contains("'card' replaced by a second disk, external has"), "{card}");
    assert!(found.conclusions.iter().any(|c| c.starts_with("Over 2 drives")));
}

#[test]
fn it_repeats_itself_and_fits_eighty_columns() {
    let only = |only: &str| {
        let scenario = Scenario::parse(SMALL, "small").unwrap();
        let (size, only) = (Some("512k".into()), Some(only.into()));
        let watch = Watch { progress: &|_, _| {}, stop: &AtomicBool::new(false) };
        run(&scenario, &Options { full: false, size, seed: 3, only }, &watch)
    };
    let found = only("card").unwrap();
    assert_eq!(found, only("card").unwrap());
    assert!(found.effects.iter().all(|e| e.change.part == "card"));
    assert_eq!(only("disk.drive").unwrap().effects.len(), 1);
    assert!(only("disk.colour").unwrap_err().to_string().contains("disk.rpm"));
    let text = text(&found, Some(("rewrite", "external")));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.contains("rewrite of 'external'"), "{text}");
    assert!(svg(&found, None).unwrap().ends_with("</svg>"));
    assert_eq!(svg(&found, Some(("rewrite", "nobody"))), None);
}

#[test]
fn a_size_that_no_model_can_have_is_an_error() {
    let scenario = Scenario::find("nvram-journal").unwrap();
    let options = Options { full: false, size: Some("1m".into()), seed: 1, only: None };
    let watch = Watch { progress: &|_, _| {}, stop: &AtomicBool::new(false) };
    let said = run(&scenario, &options, &watch).unwrap_err().to_string();
    assert!(said.starts_with("--size: the models refuse"), "{said}");
}

#[test]
fn a_scenario_of_files_is_refused() {
    let scenario = Scenario::find("data-at-risk").unwrap();
    let options = Options { full: false, size: None, seed: 1, only: None };
    let watch = Watch { progress: &|_, _| {}, stop: &AtomicBool::new(false) };
    assert!(run(&scenario, &options, &watch).unwrap_err().to_string().contains("virtual time"));
}
