//! The kernel's ext4 beside ours under the benchmark, in real time: next to nothing of it, and
//! nothing that depends on how fast the machine is. Needs root, FUSE and loop devices, as CI has
//! them.

use steadfast_lab::results::{Path, Results, SpeedRow};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::table::{Layout, text};
use steadfast_lab::{RunOptions, run};

use crate::schema::assert_described;

/// With small files and journals; two variants of each.
fn small() -> Scenario {
    let mut scenario = Scenario::find("nvram-journal").unwrap();
    let names = ["internal", "external-data", "kernel-internal", "kernel-external-data"];
    scenario.variants.retain(|v| names.contains(&v.name.as_str()));
    assert_eq!(scenario.variants.len(), names.len());
    for v in scenario.variants.iter_mut().filter(|v| v.stack.journal.is_none()) {
        v.stack.mkfs = "-J size=8".into();
    }
    scenario.workload.iozone = Some("-o -c -e -t2 -T -I -s 4g -r 64k -i0".into());
    scenario.workload.quick_size = Some("256k".into());
    scenario.workload.peers_size = Some("256k".into());
    scenario.workload.peers_scale = 64;
    scenario.workload.quick_scales_disks = false;
    scenario.workload.speed_runs = 2;
    scenario
}

#[test]
fn the_kernels_ext4_runs_beside_ours_by_turns() {
    let options = RunOptions { cuts: Some(0), peers: true, ..RunOptions::default() };
    let results: Results = run(&small(), &options, &|_, _| ()).unwrap();
    assert_described(&results);
    let names: Vec<&str> = results.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for row in &results.peers {
        assert!(row.kb_per_s.runs() == 2 && row.kb_per_s.min() > 0.0, "{row:#?}");
        let kernel = row.variant.starts_with("kernel");
        assert_eq!(row.path, if kernel { Path::Kernel } else { Path::Fuse });
        let baseline = if kernel { "kernel-internal" } else { "internal" };
        assert_eq!(row.baseline, baseline);
        assert_eq!(row.ratio.is_none(), row.variant == baseline, "{row:#?}");
    }
    assert_eq!(results.peers.len(), 2 * 4, "{:#?}", results.peers);
    // In virtual time the kernel's take no part.
    assert!(results.only().of::<SpeedRow>().all(|r| !r.variant.starts_with("kernel")));
    let shown = text(&results, Layout::default());
    assert!(shown.contains("peers: MiB/s by") && shown.contains("machine's load"), "{shown}");
    assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
}

#[test]
fn without_being_asked_for_they_take_no_part() {
    let options = RunOptions { cuts: Some(0), ..RunOptions::default() };
    let results = run(&small(), &options, &|_, _| ()).unwrap();
    assert!(results.peers.is_empty() && results.variants.len() == 2);
    let files = Scenario::find("data-at-risk").unwrap();
    let refused = run(&files, &RunOptions { peers: true, ..options }, &|_, _| ()).unwrap_err();
    assert!(refused.to_string().contains("--peers"), "{refused}");
}
