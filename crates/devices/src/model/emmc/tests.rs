use std::sync::Arc;

use super::*;
use crate::model::testbench::*;

const MIB: u64 = 1 << 20;

fn chip(change: impl FnOnce(&mut EmmcParams)) -> Arc<Emmc> {
    let mut params = EmmcParams::default();
    change(&mut params);
    Arc::new(Emmc::new("mmcblk0", &params).unwrap())
}

#[test]
fn rates_are_those_of_the_announcement() {
    simulate(|| {
        let d = chip(|_| {});
        let reads = throughput(&d, 1, 500, |_, i| read(i * 524_288, 524_288));
        assert!((135.0..141.0).contains(&reads), "{reads} MB/s");
        let writes = throughput(&d, 1, 500, |_, i| write(i * 524_288, 524_288));
        assert!((45.0..50.0).contains(&writes), "{writes} MB/s");
        let iops = |mb: f64| mb * 1e6 / 4096.0;
        let random = iops(throughput(&d, 1, 2000, |_, _| read(anywhere(4096 * MIB, 4096), 4096)));
        assert!((3_400.0..3_600.0).contains(&random), "{random}");
        let d = chip(|_| {});
        let random = iops(throughput(&d, 1, 2000, |_, _| write(anywhere(16 * MIB, 4096), 4096)));
        assert!((1_400.0..1_600.0).contains(&random), "{random}");
    });
}

#[test]
fn commands_go_one_at_a_time() {
    simulate(|| {
        let d = chip(|_| {});
        let one = throughput(&d, 1, 300, |_, _| read(anywhere(4096 * MIB, 4096), 4096));
        let four = throughput(&d, 4, 300, |_, _| read(anywhere(4096 * MIB, 4096), 4096));
        assert!((four / one - 1.0).abs() < 0.02, "{one} {four}");
    });
}

#[test]
fn closing_a_used_group_relocates_what_was_not_rewritten() {
    simulate(|| {
        let d = chip(|p| p.open_groups = 1);
        let group = 512 * 1024;
        let plain = time(&d, write(0, 4096));
        assert_eq!(plain, 20_000 + 544_000 + 81_920);
        assert_eq!(time(&d, write(group, 4096)), plain, "the first group was empty before");
        assert_eq!(time(&d, write(0, 4096)), plain, "so was the second");
        // The first group was used when it was opened again: 508 KiB are copied, one erased.
        let rest = 508 * 1024;
        let copy = (f64::from(rest) * (1e3 / 140.0)).round() + (f64::from(rest) * 20.0).round();
        assert_eq!(time(&d, write(group, 4096)), plain + copy as u64 + 2_000_000);
        // A group rewritten as a whole is only erased.
        time(&d, write(0, 524_288));
        assert_eq!(time(&d, write(group, 4096)), plain + 2_000_000);
        // A discarded group holds nothing.
        d.discard(0, 2 * 524_288).unwrap();
        time(&d, write(0, 4096));
        assert_eq!(time(&d, write(group, 4096)), plain);
    });
}

#[test]
fn random_writes_all_over_pay_a_relocation_each() {
    simulate(|| {
        let d = chip(|_| {});
        let image = {
            let mut s = Store::new(d.info().size);
            (0..8192).for_each(|g| s.write_slice(g * 524_288, &[1; 512]));
            s
        };
        d.set_contents(image).unwrap();
        let mb = throughput(&d, 1, 500, |_, _| write(anywhere(4096 * MIB, 4096), 4096));
        let iops = mb * 1e6 / 4096.0;
        assert!((50.0..100.0).contains(&iops), "{iops}");
    });
}

#[test]
fn where_pages_are_mapped_a_write_costs_the_same_everywhere() {
    simulate(|| {
        let d = chip(|p| p.mapping = EmmcMapping::Pages);
        let rate = throughput(&d, 1, 2560, |_, _| write(anywhere(2048 * MIB, 4096), 4096));
        // A group is erased for 128 writes of 4 KiB.
        let each_us = 20.0 + 544.0 + 81.92 + 2000.0 / 128.0;
        assert!((rate / (4096.0 / each_us) - 1.0).abs() < 0.002, "{rate}");
    });
}

#[test]
fn a_cache_answers_early_and_a_flush_pays() {
    simulate(|| {
        let d = chip(|p| p.cache = true);
        assert!(d.info().volatile_cache);
        assert_eq!(time(&d, write(0, 4096)), 20_000 + 20_480);
        let flush = time(&d, Request::Flush);
        assert!((1_000_000..1_300_000).contains(&flush), "{flush}");
        assert_eq!(time(&d, Request::Flush), 20_000);
        let sustained = throughput(&d, 1, 500, |_, i| write(MIB + i * 131_072, 131_072));
        assert!((47.0..54.0).contains(&sustained), "{sustained} MB/s");
        let data = steadfast_block::pattern::bytes(2, 0, 512).into();
        let fua = time(&d, Request::Write { offset: 0, data, fua: true });
        assert!(fua > 500_000, "{fua}");
        assert!(!chip(|_| {}).info().volatile_cache);
    });
}

#[test]
fn the_same_run_twice_gives_the_same_trace() {
    let run = || {
        let sim = steadfast_runtime::Sim::new(5).traced();
        sim.run_full(|| {
            let d = chip(|p| p.cache = true);
            throughput(&d, 3, 100, |t, i| match (t + i) % 6 {
                0 => Request::Flush,
                1 => Request::Discard { offset: anywhere(64 * MIB, 512), len: MIB },
                2..4 => read(anywhere(64 * MIB, 512), 512 << (i % 12)),
                _ => write(anywhere(64 * MIB, 512), 512 << (i % 12)),
            })
            .to_bits()
        })
        .unwrap()
    };
    assert!(run() == run());
}

#[test]
fn parameters_read_from_toml() {
    let p: EmmcParams = toml::from_str("cache = true\nerase_group_kb = 4096").unwrap();
    assert!(p.cache && p.erase_group_kb == 4096);
    let error = Emmc::new("x", &EmmcParams { open_groups: 0, ..p }).map(drop).unwrap_err();
    assert!(error.to_string().contains("open_groups = 0"));
}
