use super::*;

fn row(stack: &str, seconds: &[f64], (price, broken): (Option<f64>, u64)) -> StackRow {
    StackRow {
        stack: stack.to_owned(),
        label: format!("<{stack}>"),
        price,
        place: (1, 1),
        seconds: Spread::of(seconds),
        times: Some(4.0 / Spread::of(seconds).median()),
        syncs: 40,
        broken_at_most_percent: 30.0,
        scope: None,
        sync_p50_ms: 1.0,
        sync_p99_ms: None,
        cuts: 10,
        broken_promises: broken,
        cuts_that_broke: broken,
        lost_bytes: 77.0,
        lost_calls: 1.0,
        lost_ms: 3.0,
        recovery_ms: 5.0,
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
    StackComparison { rows, currency: Some("EUR".into()), choice, without_price }
}

#[test]
fn prices_are_a_column_and_a_budget_names_two_stacks() {
    let text = comparison(Some(150.0)).text();
    for part in [
        "Fastest within 150 EUR is card (<card>, 120.5 EUR): 1.25 s on it, 4.00 s on\ndisk",
        "Fastest whose cuts take nothing promised is flash (<flash>, 90 EUR): 2.00 s",
        "Without a price, and so left out (1 stack): hdd.\n",
        "\"times as fast\" is beside disk, the first of these stacks.\n",
        "      EUR\n",
        "    120.5\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let without = StackComparison {
        rows: vec![row("disk", &[4.0], (None, 0))],
        currency: None,
        choice: StackChoice::default(),
        without_price: Vec::new(),
    };
    assert!(!without.text().contains("price"), "{}", without.text());
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
