//! What power cuts take from the measured run itself.

use steadfast_devices::model::ModelParams;
use steadfast_lab::results::{LossRow, Results, SpeedRow};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::table::{Layout, text};
use steadfast_lab::{RunOptions, run};

use crate::schema::assert_described;
use steadfast_setup::DeviceSpec;

/// Enough that some come later than the moment in which something was acknowledged.
const CUTS: u64 = 24;

/// Two variants of nvram-journal at a small size; so many cuts of the measured run.
fn results(loss_cuts: u64) -> Results {
    let mut scenario = Scenario::find("nvram-journal").unwrap();
    scenario.variants.retain(|v| ["internal", "external-data"].contains(&v.name.as_str()));
    assert_eq!(scenario.variants.len(), 2);
    scenario.workload.quick_size = Some("4m".into());
    scenario.workload.quick_scales_disks = false;
    scenario.workload.risk_size = Some("512k".into());
    scenario.workload.loss_cuts = loss_cuts;
    scenario.workload.quick_cuts = None;
    for device in scenario.topology.devices.values_mut().filter_map(DeviceSpec::model_mut) {
        match device {
            ModelParams::Hdd(disk) => disk.sectors = 6_000_000,
            // More is logged than it holds.
            ModelParams::Nvram(card) => card.size_mib = 16,
            _ => {}
        }
    }
    let options = RunOptions { cuts: Some(2), seed: 5, ..RunOptions::default() };
    run(&scenario, &options, &|_, _| ()).unwrap()
}

#[test]
fn the_measured_run_is_cut_and_recording_it_changes_no_figure() {
    let (cut, plain) = (results(CUTS), results(0));
    assert_described(&cut);
    let (cut_text, cut, plain) = (text(&cut, Layout::default()), cut.only(), plain.only());
    assert!(cut.of::<SpeedRow>().eq(plain.of::<SpeedRow>()));
    assert_eq!(plain.of::<LossRow>().count(), 0);
    assert_eq!(cut.of::<LossRow>().count(), 2);
    for r in cut.of::<LossRow>() {
        assert_eq!((r.cuts, r.damage.events, r.data_bytes), (CUTS, 0, 12 << 20), "{r:#?}");
        // IOzone's stdio tests are not synchronous: until their fsync all may be lost.
        assert!(r.unsynced_share > 0.0 && r.unsynced_share < 0.5, "{r:#?}");
        assert!(r.unsynced_bytes.max() > 0.0, "{r:#?}");
        assert!(r.bytes.max() > 0.0 && r.bytes.max() <= r.unsynced_bytes.max(), "{r:#?}");
        assert!(r.ms.max() > 0.0, "{r:#?}");
    }
    let of = |name: &str| cut.of::<LossRow>().find(|r| r.variant == name).unwrap();
    // All data goes through the card's 16 MiB; the metadata do not fill a journal on the disk.
    assert!(of("external-data").steady.is_some(), "{:#?}", of("external-data"));
    assert!(of("internal").steady.is_none(), "{:#?}", of("internal"));
    assert!(cut_text.contains("not reached"), "{cut_text}");
}
