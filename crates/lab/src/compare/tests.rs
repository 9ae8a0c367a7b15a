use super::*;
use crate::results::Note;

fn row(stack: &str, seconds: &[f64], (price, broken): (Option<f64>, u64)) -> StackRow {
    StackRow {
        stack: stack.to_owned(),
        label: format!("<{stack}>"),
        price,
        place: Some((1, 1)),
        seconds: Spread::of(seconds),
        times: Some(4.0 / Spread::of(seconds).median()),
        syncs: 40,
        scope: None,
        sync_p50_ms: Some(1.0),
        sync_p99_ms: None,
        loss: Some(Loss {
            cuts: 10,
            broken_promises: broken,
            cuts_that_broke: broken,
            broken_at_most_percent: 30.0,
            lost_bytes: 77.0,
            lost_calls: 1.0,
            lost_ms: 3.0,
            recovery_ms: 5.0,
        }),
        data_journal: None,
        is_first: stack == "disk",
        is_control: false,
    }
}

fn comparison(budget: Option<f64>) -> StackComparison {
    let rows = vec![
        row("card", &[1.0, 1.5], (Some(120.5), 2)),
        row("flash", &[2.0], (Some(90.0), 0)),
        row("disk", &[4.0], (None, 0)),
    ];
    let choice = StackChoice { budget, ..StackChoice::default() };
    let without_price = budget.map(|_| vec!["hdd".to_owned()]).unwrap_or_default();
    StackComparison { rows, currency: Some("EUR".into()), choice, without_price, stopped: None }
}

#[test]
fn prices_are_a_column_and_a_budget_names_two_stacks() {
    let text = comparison(Some(150.0)).wide_text();
    let joined = text.replace('\n', " ");
    for part in [
        "Fastest within 150 EUR (1 stack without a price) is card (<card>, 120.5 EUR): 1.25 s",
        "4.00 s on disk (<disk>; 3.2 times)",
        "Fastest whose cuts took nothing promised is flash (<flash>, 90 EUR): 2.00 s",
        "Without a price, and so left out (1 stack): hdd.\n",
        "\"times as fast\" is beside disk, the first of these stacks.\n",
        "      EUR\n",
        "    120.5\n",
    ] {
        assert!(text.contains(part) || joined.contains(part), "{part}: {text}");
    }
    let without = StackComparison {
        rows: vec![row("disk", &[4.0], (None, 0))],
        currency: None,
        choice: StackChoice::default(),
        without_price: Vec::new(),
        stopped: None,
    };
    assert!(!without.wide_text().contains("price"), "{}", without.wide_text());
}

/// Twenty stacks, and all that can be said of them at once, fit a terminal; what the others are
/// compared with, and what loses what was promised, are there.
#[test]
fn a_screen_holds_the_answer() {
    let mut rows: Vec<StackRow> =
        (0..20).map(|n| row(&format!("stack-{n}"), &[1.0 + f64::from(n)], (None, 0))).collect();
    rows[19].is_first = true;
    rows[18].loss.as_mut().unwrap().broken_promises = 3;
    rows[18].is_control = true;
    let choice = StackChoice {
        flat_out: true,
        budget: Some(1e3),
        cut_off: Some(9),
        ..StackChoice::default()
    };
    let without_price = (0..19).map(|n| format!("other-{n}")).collect();
    let found = StackComparison { rows, choice, without_price, ..comparison(None) };
    let notes: Vec<Note> = (0..4).map(|n| Note::alarm(format!("WRONG {n}"))).collect();
    let text = found.text(&notes, Some("Replayed in /tmp: 1.000 s, recorded in 1.000 s."));
    let fits = text.lines().all(|line| line.chars().count() <= 80);
    assert!(fits && text.lines().count() <= 24, "{text}");
    for part in ["WRONG 0", "Fastest within", "(--flat-out)", " stack-19 ", " stack-18 ", "--wide"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(" more\n") && !text.contains("other-7"), "{text}");
}

#[test]
fn a_budget_keeps_what_is_cheap_enough() {
    let trace = Path::new("t.trace");
    let choice = |budget| StackChoice { budget: Some(budget), ..StackChoice::default() };
    let refused = |text: &str, budget| {
        let catalogue = Some((text, "mine.toml"));
        scenario(catalogue, trace, &choice(budget)).unwrap_err().to_string()
    };
    assert!(refused(STACKS, 100.0).contains("--budget: no stack of mine.toml has a price"));
    let priced = STACKS
        .replace("name = \"nvme\"", "name = \"nvme\"\nprice = 300.0")
        .replace("name = \"emmc\"", "name = \"emmc\"\nprice = 20");
    assert!(refused(&priced, 10.0).contains("no stack costs 10 or less; the cheapest costs 20"));
    let kept = scenario(Some((&priced, "mine.toml")), trace, &choice(20.0)).unwrap();
    let names: Vec<&str> = kept.scenario.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["emmc"]);
    assert_eq!(kept.without_price.len(), 18);
}

#[test]
fn a_stack_of_the_kernels_is_not_ranked_beside_models() {
    let text = "version = 2\nname = \"s\"\ntitle = \"t\"\n[device.d]\nkind = \"ssd\"\n\
                [[variant]]\nname = \"peer\"\nlabel = \"l\"\ndisk = \"d\"\n\
                mount = \"data=ordered\"\nkernel = \"ext4\"\n";
    let catalogue = Some((text, "mine.toml"));
    let refused = scenario(catalogue, Path::new("t.trace"), &StackChoice::default());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("--stacks: 'peer' of mine.toml has `kernel`"), "{said}");
}

/// The trace's own table is behind the file's last line.
#[test]
fn mistakes_are_in_the_files_own_lines() {
    let refused = |more: &str| {
        let text = format!("{STACKS}\n{more}\n");
        let lines = text.lines().count();
        let catalogue = Some((text.as_str(), "mine.toml"));
        let said = scenario(catalogue, Path::new("t.trace"), &StackChoice::default());
        let said = said.unwrap_err().to_string();
        let place = said.lines().find_map(|line| line.split_once("mine.toml:")).expect("a place");
        let line: usize = place.1.split(':').next().unwrap().parse().unwrap();
        assert!(line + 1 >= lines && line <= lines, "{more}: {lines} lines: {said}");
        said
    };
    assert!(refused("[workload]\ncuts = 3").contains("has no [workload]"));
    assert!(refused("[[variant]]\nname = \"v").contains("mistake"));
    assert!(refused("[[variant]]\nnaem = \"v\"").contains("did you mean `name`?"));
    assert!(refused("cuts = [1,").contains("mistake"));
}

#[test]
fn what_the_figures_are_of_is_said() {
    let mut found = comparison(None);
    found.choice.cut_off = Some(7);
    found.choice.flat_out = true;
    let text = found.sentences().join("\n");
    assert!(text.contains("cut off: the figures are of the 7 calls"), "{text}");
    assert!(text.contains("Without the program's own work (--flat-out)"), "{text}");
}

#[test]
fn what_was_not_measured_is_null() {
    let mut uncut = row("disk", &[4.0], (None, 0));
    (uncut.loss, uncut.sync_p50_ms) = (None, None);
    let json = serde_json::to_value(&uncut).unwrap();
    let figures = ["broken_promises", "cuts_that_broke", "broken_at_most_percent", "lost_bytes"];
    let more = ["lost_calls", "lost_ms", "recovery_ms", "sync_p50_ms", "scope"];
    for key in figures.into_iter().chain(more) {
        assert_eq!(json.get(key), Some(&serde_json::Value::Null), "{key}: {json}");
    }
    assert_eq!(json["cuts"], 0);
    let cut = serde_json::to_value(row("disk", &[4.0], (None, 2))).unwrap();
    assert_eq!((&cut["broken_promises"], &cut["lost_bytes"]), (&2.into(), &77.0.into()));
}

/// Zeros that could not have been anything else are not told as good news.
#[test]
fn what_the_cuts_do_not_say_is_not_said() {
    let of = |edit: &dyn Fn(&mut StackRow), broken: u64| {
        let mut disk = row("disk", &[4.0], (None, 0));
        let mut liar = row("liar", &[3.0], (None, broken));
        liar.is_control = true;
        [&mut disk, &mut liar].into_iter().for_each(edit);
        let rows = vec![disk, liar];
        let found = StackComparison { rows, ..comparison(None) };
        found.sentences().join("\n")
    };
    let good = of(&|_| (), 2);
    assert!(good.contains("What was synced is there after every cut of 1 stack"), "{good}");
    assert!(good.contains("liar loses what was synced: 2 promises broken"), "{good}");
    assert!(good.contains("In 10 cuts of disk at most 77 B (disk)"), "{good}");
    for (said, why, help) in [
        (of(&|row| row.syncs = 0, 0), "the program syncs nothing", "do not help"),
        (of(&|_| (), 0), "hardly any cut fell after a sync", "More --cuts help"),
        (
            of(&|row| row.loss.as_mut().unwrap().broken_at_most_percent = 100.0, 2),
            "up to 100 % of cuts may differ",
            "may help",
        ),
    ] {
        assert!(said.contains("Of what was synced these cuts say nothing"), "{said}");
        assert!(said.contains(why) && said.contains(help), "{said}");
        assert!(!said.contains("is there after every cut"), "{said}");
    }
}

#[test]
fn a_run_that_was_stopped_is_said_to_be() {
    let stopped = |rows| StackComparison { rows, stopped: Some(20), ..comparison(None) };
    let text = stopped(Vec::new()).text(&[], None);
    assert_eq!(text, "It was stopped: of 20 stacks, none had been run by then.\n");
    let some = stopped(vec![row("disk", &[4.0], (None, 0))]).text(&[], None);
    assert!(some.contains("of 20 stacks, 1 had been run by then") && some.contains("4.000"));
}

#[test]
fn stacks_that_differ_by_what_nobody_waits_for_are_named() {
    let mut found = comparison(None);
    for (row, seconds) in found.rows.iter_mut().zip([1.0, 1.0, 4.0]) {
        row.seconds = Spread::of(&[seconds]);
    }
    found.rows[..2].iter_mut().for_each(|row| row.data_journal = Some("nvram".into()));
    let said = found.sentences().join("\n");
    assert!(said.contains("card and flash are equal by construction"), "{said}");
    found.rows[1].seconds = Spread::of(&[1.1]);
    assert!(!found.sentences().join("\n").contains("by construction"));
}

#[test]
fn how_the_recorded_program_ended_is_said() {
    let mut found = comparison(None);
    let end = TraceEnd { calls: 1, at: 139_000_000, status: Some(3), interrupted: false };
    found.choice.recorded = Some(end);
    let said = found.sentences().join("\n");
    assert!(said.contains("the program took 139 ms; it ended with status 3."), "{said}");
}

#[test]
fn the_page_answers_first_and_runs_nothing() {
    let stored = include_str!("../../../../docs/results/data-at-risk.json");
    let mut results = Results::read(stored).unwrap();
    let mut compared = comparison(None);
    // Three of the variants that the document has figures of.
    let names: Vec<String> = results.variants.iter().map(|v| v.name.clone()).collect();
    for (row, name) in compared.rows.iter_mut().zip(&names) {
        row.stack.clone_from(name);
    }
    for row in results.runs[0].files_mut() {
        row.calls_at_s = vec![(1, 0.01), (2, 0.02)];
    }
    let page = compared.page("<app>.trace", &results);
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part}"));
    assert!(at("Fastest is ") < at("<svg") && at("<svg") < at("<table"));
    assert!(at("The program over time") < at("How long a sync takes"));
    assert!(at("How long a sync takes") < at("How it was found"));
    assert!(page.contains("&lt;app&gt;.trace on 3 stacks") && !page.contains("<app>"));
    assert!(page.contains(&format!(">{} !<", names[0])) && !page.contains("<script"));
}
