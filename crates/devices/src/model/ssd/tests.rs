use std::sync::Arc;

use super::*;
use crate::model::testbench::*;

const GIB: u64 = 1 << 30;

fn disk(change: impl FnOnce(&mut SsdParams)) -> Arc<Ssd> {
    let mut params = SsdParams::default();
    change(&mut params);
    Arc::new(Ssd::new("sdb", &params).unwrap())
}

fn iops(tasks: u64, each: u64, writes: bool) -> f64 {
    simulate(move || {
        let d = disk(|_| {});
        let mb = throughput(&d, tasks, each, move |_, _| {
            let at = anywhere(300 * GIB, 4096);
            if writes { write(at, 4096) } else { read(at, 4096) }
        });
        mb * 1e6 / 4096.0
    })
}

#[test]
fn a_lone_read_is_controller_die_channel_and_link() {
    simulate(|| {
        let d = disk(|_| {});
        // 4 KiB: 24.7 us on the channel, 8.2 us on the link.
        assert_eq!(time(&d, read(0, 4096)), 13_300 + 50_000 + 24_675 + 8_192);
        assert_eq!(time(&d, Request::Flush), 13_300);
    });
}

#[test]
fn random_rates_are_those_of_the_data_sheet() {
    let reads = iops(32, 1000, false);
    assert!((67_000.0..76_000.0).contains(&reads), "{reads}");
    let writes = iops(32, 2000, true);
    assert!((32_000.0..41_000.0).contains(&writes), "{writes}");
    let alone = iops(1, 1000, false);
    assert!((9_000.0..12_000.0).contains(&alone), "{alone}");
}

#[test]
fn sequential_rates_are_those_of_the_data_sheet() {
    simulate(|| {
        let d = disk(|_| {});
        let reads = throughput(&d, 8, 500, |t, i| read(t * GIB + i * 131_072, 131_072));
        assert!((440.0..501.0).contains(&reads), "{reads} MB/s");
        let writes = throughput(&d, 4, 1000, |t, i| write(t * GIB + i * 131_072, 131_072));
        assert!((420.0..480.0).contains(&writes), "{writes} MB/s");
    });
}

#[test]
fn a_write_is_as_fast_as_its_cache() {
    simulate(|| {
        let protected = disk(|_| {});
        assert!(!protected.info().volatile_cache);
        let took = time(&protected, write(0, 4096));
        assert!((64_000..66_000).contains(&took), "{took}");
        assert_eq!(time(&protected, Request::Flush), 13_300);
        let volatile = disk(|p| p.write_cache = SsdCache::Volatile);
        assert!(volatile.info().volatile_cache);
        time(&volatile, write(0, 4096));
        let flush = time(&volatile, Request::Flush);
        assert!((2_000_000..3_000_000).contains(&flush), "{flush}");
        assert_eq!(time(&volatile, Request::Flush), 13_300);
        let off = disk(|p| p.write_cache = SsdCache::Off);
        let took = time(&off, write(0, 4096));
        assert!((1_200_000..1_500_000).contains(&took), "{took}");
    });
}

#[test]
fn a_full_buffer_makes_writes_wait_for_programs_and_erases() {
    simulate(|| {
        let d = disk(|p| p.write_buffer_kb = 512);
        let writers: Vec<_> = (0..32)
            .map(|i| {
                let d = Arc::clone(&d);
                steadfast_runtime::spawn(format!("writer {i}"), move || {
                    let times = (0..500).map(|_| time(&*d, write(anywhere(300 * GIB, 4096), 4096)));
                    times.max().unwrap()
                })
            })
            .collect();
        let slowest = writers.into_iter().map(|w| w.join().unwrap()).max().unwrap();
        assert!((2_000_000..30_000_000).contains(&slowest), "{slowest}");
    });
}

#[test]
fn the_same_run_twice_gives_the_same_trace() {
    let run = || {
        let sim = steadfast_runtime::Sim::new(5).traced();
        sim.run_full(|| {
            let d = disk(|p| p.write_cache = SsdCache::Volatile);
            throughput(&d, 7, 100, |t, i| match (t + i) % 5 {
                0 => Request::Flush,
                1..3 => read(anywhere(GIB, 512), 512 << (i % 12)),
                _ => write(anywhere(GIB, 512), 512 << (i % 12)),
            })
            .to_bits()
        })
        .unwrap()
    };
    assert!(run() == run());
}

#[test]
fn parameters_read_from_toml() {
    let p: SsdParams = toml::from_str("write_cache = \"volatile\"").unwrap();
    assert_eq!(p.write_cache, SsdCache::Volatile);
    assert!(toml::from_str::<SsdParams>("write_cache = \"lying\"").is_err());
    let bad = SsdParams { random_write_amplification: 0.5, ..p };
    let error = Ssd::new("x", &bad).map(drop).unwrap_err().to_string();
    let why = "random_write_amplification = 0.5: must be between 1 and 1000";
    assert!(error.contains(why), "{error}");
}
