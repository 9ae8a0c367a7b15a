use std::sync::Arc;

use steadfast_block::conformance;

use super::*;
use crate::model::testbench::*;

fn module(change: impl FnOnce(&mut NvdimmParams)) -> Arc<Nvdimm> {
    let mut params = NvdimmParams::default();
    change(&mut params);
    Arc::new(Nvdimm::new("pmem0", &params).unwrap())
}

/// Nanoseconds that something takes.
fn took(work: impl FnOnce()) -> u64 {
    let start = now();
    work();
    nanos_since(start)
}

#[test]
fn conforms_in_real_and_simulated_time() {
    let make = || -> Arc<dyn BlockDevice> { module(|p| p.size_mib = 16) };
    conformance::run(&make);
    simulate(move || conformance::run(&make));
}

/// 64 bytes at 2133 MT/s are 3.75 ns, and 3.45 % more with the refreshes: 3.88 ns.
#[test]
fn four_kib_cost_their_lines() {
    simulate(|| {
        let d = module(|_| {});
        let page = [1; 4096];
        // 64 lines, each a tenth of 50 ns.
        assert_eq!(took(|| d.store_through(0, &page).unwrap()), 320);
        // The controller has accepted the last after 50 ns; a second fence waits for nothing.
        assert_eq!(took(|| d.fence().unwrap()), 50);
        assert_eq!(took(|| d.fence().unwrap()), 0);
        // The row is open: 50 + 14.06 + 3.88, and 63 tenths of it.
        let mut out = [0; 4096];
        assert_eq!(took(|| d.load(0, &mut out).unwrap()), 496);
        assert_eq!(out, page);
        // Another row: 28.12 more for the first line.
        assert_eq!(took(|| d.load(8192 * 16, &mut out).unwrap()), 524);
        // What is stored is fetched first, without waiting for any; 64 lines back at 11.4 ns.
        assert_eq!(took(|| d.store(8192 * 16, &page).unwrap()), 435);
        assert_eq!(took(|| d.persist(8192 * 16, 4096).unwrap()), 730);
        assert_eq!(took(|| d.fence().unwrap()), 50);
    });
}

#[test]
fn a_request_is_one_copy_in_the_callers_time() {
    simulate(|| {
        let d = module(|_| {});
        assert_eq!(time(&d, write(0, 4096)), 320);
        assert_eq!(time(&d, Request::Flush), 50);
        assert_eq!(time(&d, read(0, 4096)), 496);
        let fua = Request::Write { offset: 0, data: vec![2; 4096].into(), fua: true };
        assert_eq!(time(&d, fua), 370);
        let rate = throughput(&d, 1, 100, |_, i| write(i << 20, 1 << 20));
        // One processor: 64 bytes each 5 ns. The channel would bear 16,500 MB/s.
        assert!((12_000.0..12_900.0).contains(&rate), "{rate} MB/s");
    });
}

#[test]
fn lines_all_over_the_module_wait_for_its_rows() {
    simulate(|| {
        let d = module(|_| {});
        // Each in another row of the same bank, more than the controller's queue holds.
        let far = |i: u64| i * 8192 * 16;
        let first = took(|| (0..64).for_each(|i| d.store_through(far(i), &[1; 64]).unwrap()));
        let later = took(|| (64..1064).for_each(|i| d.store_through(far(i), &[1; 64]).unwrap()));
        assert_eq!(first, 64 * 5);
        // 28.12 + 3.88 ns each, rounded up to whole nanoseconds.
        assert!((31_000..34_000).contains(&later), "{later} ns");
    });
}

#[test]
fn what_does_not_fill_a_line_goes_through_the_caches() {
    simulate(|| {
        let d = module(|_| {});
        let through = took(|| d.store_through(60, &[7; 72]).unwrap());
        let mut out = [0; 74];
        d.load(59, &mut out).unwrap();
        assert_eq!((out[0], out[1], out[72], out[73]), (0, 7, 7, 0));
        // One line past them, the ends of two others fetched and written back.
        assert!(through > 5 + 2 * 11, "{through} ns");
        assert!(d.store_through((8 << 30) - 4, &[0; 8]).is_err());
        assert!(d.load(u64::MAX, &mut out).is_err() && d.persist(8 << 30, 1).is_err());
    });
}

#[test]
fn with_eadr_nothing_is_written_back() {
    simulate(|| {
        let d = module(|p| p.power_fail_domain = PowerFailDomain::Eadr);
        assert!(!d.info().volatile_cache && d.saves_caches());
        d.store(0, &[1; 4096]).unwrap();
        assert_eq!(took(|| d.persist(0, 4096).unwrap()), 0);
        assert_eq!(took(|| d.fence().unwrap()), 0);
        let adr = module(|_| {});
        assert!(adr.info().volatile_cache && !adr.saves_caches());
        assert_eq!(adr.info().atomic_write, 8);
    });
}

#[test]
fn its_energy_source_decides_what_survives() {
    simulate(|| {
        let d = module(|_| {});
        assert_eq!(d.info().unfit_to_persist(), None);
        d.set_energy_source(Battery::Charging);
        let why = "pmem0: its energy source is charging: it cannot save itself";
        assert_eq!(d.info().unfit_to_persist().as_deref(), Some(why));
        d.set_energy_source(Battery::Good);
        assert_eq!(d.info().persistence, Persistence::Persistent);
        let failed = module(|p| p.energy_source = Battery::Failed);
        assert!(failed.info().unfit_to_persist().unwrap().contains("has failed"));
        let idle = module(|p| p.armed = false);
        assert!(idle.info().unfit_to_persist().unwrap().contains("not armed"));
    });
}

#[test]
fn parameters_read_from_toml() {
    let p: NvdimmParams =
        toml::from_str("energy_source = \"disabled\"\npower_fail_domain = \"eadr\"").unwrap();
    assert_eq!(p.energy_source, Battery::Disabled);
    assert!(toml::from_str::<NvdimmParams>("energy = \"good\"").is_err());
    let wrong = |change: fn(&mut NvdimmParams)| {
        let mut p = NvdimmParams::default();
        change(&mut p);
        Nvdimm::new("x", &p).map(drop).unwrap_err().to_string()
    };
    assert!(wrong(|p| p.size_mib = 0).contains("size_mib = 0"));
    assert!(wrong(|p| p.row_bytes = 3000).contains("power of two"));
    assert!(wrong(|p| p.refresh_ns = 9000.0).contains("less than refresh_interval_us"));
    assert!(wrong(|p| p.controller_ns = -1.0).contains("controller_ns"));
}
