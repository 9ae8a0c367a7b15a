use std::sync::Arc;

use super::*;
use crate::model::testbench::*;

fn card(change: impl FnOnce(&mut NvramParams)) -> Arc<Nvram> {
    let mut params = NvramParams::default();
    change(&mut params);
    Arc::new(Nvram::new("umema", &params).unwrap())
}

#[test]
fn a_page_takes_its_bus_time_a_descriptor_and_an_interrupt() {
    simulate(|| {
        let d = card(|_| {});
        // 512 clocks of data and 8 bursts of 16 clocks at 66.667 MHz: 9.6 us.
        assert_eq!(time(&d, write(0, 4096)), 9_600 + 2_500 + 10_000);
        assert_eq!(time(&d, read(0, 4096)), 22_100);
        assert_eq!(time(&d, Request::Flush), 0);
    });
}

#[test]
fn a_chain_shares_its_interrupt() {
    simulate(|| {
        let d = card(|_| {});
        let start = steadfast_runtime::now();
        // The first goes alone; the others wait and share a chain.
        let all: Vec<_> = (0..11).map(|i| d.submit(write(i * 4096, 4096))).collect();
        Completion::wait_all(&all).unwrap();
        assert_eq!(nanos_since(start), 22_100 + 10 * 12_100 + 10_000);
    });
}

#[test]
fn sequential_rates_are_those_of_the_bus_and_its_overheads() {
    simulate(|| {
        let d = card(|_| {});
        let rate = throughput(&d, 1, 2000, |_, i| read(i * 131_072 % (256 << 20), 131_072));
        // Measured on such a card with hdparm: 310.
        assert!((300.0..345.0).contains(&rate), "{rate} MB/s");
        let big = throughput(&d, 2, 100, |_, i| write(i << 20, 1 << 20));
        assert!((300.0..345.0).contains(&big), "{big} MB/s");
    });
}

#[test]
fn batteries_decide_what_survives() {
    use Battery::{Charging, Disabled, Failed, Good};
    simulate(|| {
        let d = card(|_| {});
        assert_eq!(d.info().unfit_to_persist(), None);
        d.set_battery(1, Failed);
        assert_eq!(d.info().unfit_to_persist(), None, "one good battery is enough");
        d.set_battery(2, Charging);
        let why = "umema: no battery is good (battery 1 has failed, battery 2 is charging)";
        assert_eq!(d.info().unfit_to_persist().as_deref(), Some(why));
        d.set_battery(2, Good);
        assert_eq!(d.info().persistence, Persistence::Persistent);
        let strict = card(|p| {
            p.batteries_needed = 2;
            p.batteries = [Good, Disabled];
        });
        let why = strict.info().unfit_to_persist().unwrap();
        assert!(why.contains("only 1 of the 2"), "{why}");
        assert!(why.contains("battery 2 is disabled"), "{why}");
        strict.set_battery(7, Good);
    });
}

#[test]
fn an_uninitialised_card_fails_reads_of_what_was_never_written() {
    simulate(|| {
        let d = card(|p| p.initialised = false);
        let why = "umema has never been initialised";
        assert_eq!(d.info().unfit_to_persist().as_deref(), Some(why));
        let error = d.read(4096, 4096).unwrap_err().to_string();
        assert!(error.contains("read at byte 4096"), "{error}");
        assert!(error.contains("ECC error in sector 8"), "{error}");
        d.write(4096, vec![1; 1024].into()).unwrap();
        assert_eq!(d.read(4096, 1024).unwrap(), vec![1; 1024]);
        let error = d.read(4096, 4096).unwrap_err().to_string();
        assert!(error.contains("sector 10"), "{error}");
        assert!(!d.info().initialised);
        d.initialise().unwrap();
        assert!(d.info().initialised);
        assert_eq!(d.read(4096, 4096).unwrap(), vec![0; 4096]);
    });
}

#[test]
fn the_same_run_twice_gives_the_same_trace() {
    let run = || {
        let sim = steadfast_runtime::Sim::new(5).traced();
        sim.run_full(|| {
            let d = card(|_| {});
            throughput(&d, 7, 100, |t, i| {
                let at = anywhere(200 << 20, 512);
                if (t + i) % 3 == 0 { read(at, 512 << (i % 12)) } else { write(at, 1024) }
            })
            .to_bits()
        })
        .unwrap()
    };
    assert!(run() == run());
}

#[test]
fn parameters_read_from_toml() {
    let p: NvramParams =
        toml::from_str("batteries = [\"failed\", \"charging\"]\ninitialised = false").unwrap();
    assert_eq!(p.batteries, [Battery::Failed, Battery::Charging]);
    assert!(toml::from_str::<NvramParams>("bateries = []").is_err());
    let error = Nvram::new("x", &NvramParams { size_mib: 0, ..p }).map(drop).unwrap_err();
    assert!(error.to_string().contains("size_mib = 0"));
}
