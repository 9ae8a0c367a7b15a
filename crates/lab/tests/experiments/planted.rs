//! What is kept of planted bugs (`crates/lab/examples/planted.rs`) is of the programs as they are:
//! else the program would not quote it, and nobody would notice.

use steadfast_lab::results::{PlantedRuns, RiskRow};
use steadfast_lab::scenario::{RunKind, Scenario};
use steadfast_lab::{RunOptions, run};

#[test]
fn what_is_quoted_is_of_these_programs() {
    let kept = PlantedRuns::kept().unwrap();
    for planted in &kept.runs {
        let mut scenario = Scenario::find(&planted.scenario).unwrap();
        assert_eq!(planted.cuts, scenario.workload.cuts, "{}", planted.variant);
        scenario.variants.retain(|v| v.name == planted.variant);
        assert_eq!(scenario.variants.len(), 1, "{} has gone", planted.variant);
        scenario.workload.lying_cuts_per_4 = 0;
        if let Some(files) = &mut scenario.workload.files {
            assert_eq!(planted.workload, files.description());
            // What the programs do first is what is compared.
            files.seconds = 6.0;
        } else {
            scenario.variants[0].run = RunKind::Risk;
        }
        let options = RunOptions { cuts: Some(1), seed: planted.seed, ..RunOptions::default() };
        let results = run(&scenario, &options, &|_, _| ()).unwrap();
        let programs = results.only().of::<RiskRow>().next().unwrap().programs;
        assert_eq!(programs, Some(planted.programs), "{}: the example 'planted'", planted.variant);
    }
}

/// A run of other programs, another seed or another scenario is not told of these bugs.
#[test]
fn nothing_is_quoted_of_other_programs() {
    let kept = PlantedRuns::kept().unwrap();
    for planted in &kept.runs {
        let scenario = Scenario::find(&planted.scenario).unwrap();
        let quoted = |scenario: &Scenario, seed, cuts, programs| {
            kept.of(scenario, &planted.variant, (seed, cuts), programs).is_some()
        };
        let (seed, cuts, programs) = (planted.seed, planted.cuts, planted.programs);
        assert!(quoted(&scenario, seed, cuts, programs));
        assert!(!quoted(&scenario, seed + 1000, cuts, programs));
        assert!(!quoted(&scenario, seed, cuts + 1, programs));
        assert!(!quoted(&scenario, seed, cuts, programs ^ 1));
        let mut other = scenario.clone();
        other.workload.speed_runs += 1;
        assert!(!quoted(&other, seed, cuts, programs));
    }
}
