use std::sync::Arc;
use std::time::Duration;

use steadfast_runtime::{now, sleep, spawn};

use super::*;
use crate::model::testbench::*;

const KIB_256: u64 = 256 << 10;
const GIB: u64 = 1 << 30;
const REVOLUTION: u64 = 4_000_000;
const OVERHEAD: u64 = 200_000;

fn disk(change: impl FnOnce(&mut HddParams)) -> Arc<Hdd> {
    // Exact times follow only from seeks that take exactly what the curve says.
    let mut params = HddParams { seek_variation_ms: 0.0, ..HddParams::default() };
    change(&mut params);
    Arc::new(Hdd::new("sda", &params).unwrap())
}

#[test]
fn rewriting_one_sector_takes_a_revolution() {
    simulate(|| {
        let d = disk(|_| {});
        time(&d, write(0, 512));
        for _ in 0..3 {
            assert_eq!(time(&d, write(0, 512)), REVOLUTION);
        }
    });
}

#[test]
fn the_next_sector_is_missed_by_the_overhead_and_costs_a_revolution_and_a_sector() {
    simulate(|| {
        let d = disk(|_| {});
        let per_track = d.with_physics(|p| p.sectors_per_track(0));
        time(&d, write(0, 512));
        let sector = time(&d, write(512, 512)) - REVOLUTION;
        // From the end of the first sector to the end of the second, in whole nanoseconds.
        assert_eq!(sector, 2 * REVOLUTION / per_track - REVOLUTION / per_track);
    });
}

#[test]
fn a_first_access_is_overhead_seek_and_rotation() {
    simulate(|| {
        let d = disk(|_| {});
        // Half the sectors inwards, at a time when nothing is cached.
        let took = time(&d, read(68 * GIB, 512));
        let seek_and_rotation = took - OVERHEAD;
        assert!((3_000_000..9_000_000).contains(&seek_and_rotation), "{seek_and_rotation}");
        // Sector 0 begins at every whole revolution, wherever the arm comes from.
        let per_track = d.with_physics(|p| p.sectors_per_track(0));
        time(&d, write(0, 512));
        assert_eq!(now().0 % REVOLUTION, REVOLUTION / per_track);
    });
}

#[test]
fn sequential_reads_reach_the_media_rate_one_at_a_time() {
    simulate(|| {
        let d = disk(|_| {});
        let rate = throughput(&d, 1, 2000, |_, i| read(i * KIB_256, KIB_256));
        assert!((165.0..173.0).contains(&rate), "{rate} MB/s");
        let small = throughput(&d, 1, 5000, |_, i| read(20 * GIB + i * 65536, 65536));
        assert!((150.0..173.0).contains(&small), "{small} MB/s");
        let inner = 286_749_488 * 512 - GIB;
        let rate = throughput(&d, 1, 2000, move |_, i| read(inner + i * KIB_256, KIB_256));
        assert!((108.0..113.0).contains(&rate), "{rate} MB/s");
    });
}

#[test]
fn a_slow_reader_is_answered_from_the_cache_and_pays_only_the_link() {
    simulate(|| {
        let d = disk(|_| {});
        time(&d, read(0, 65536));
        for i in 1..200 {
            sleep(Duration::from_millis(20));
            assert_eq!(time(&d, read(i * 65536, 65536)), OVERHEAD + 218_453);
        }
    });
}

#[test]
fn without_look_ahead_each_sequential_read_loses_most_of_a_revolution() {
    simulate(|| {
        let d = disk(|p| p.look_ahead = false);
        let rate = throughput(&d, 1, 500, |_, i| read(i * KIB_256, KIB_256));
        assert!((45.0..70.0).contains(&rate), "{rate} MB/s");
    });
}

#[test]
fn queued_sequential_writes_reach_the_media_rate() {
    simulate(|| {
        let d = disk(|_| {});
        let start = now();
        let all: Vec<_> = (0..1000).map(|i| d.submit(write(i * KIB_256, KIB_256))).collect();
        Completion::wait_all(&all).unwrap();
        let rate = (1000 * KIB_256) as f64 * 1e3 / nanos_since(start) as f64;
        assert!((165.0..173.0).contains(&rate), "{rate} MB/s");
    });
}

#[test]
fn a_lone_synchronous_writer_loses_a_revolution_a_request() {
    simulate(|| {
        let d = disk(|_| {});
        let rate = throughput(&d, 1, 500, |_, i| write(i * KIB_256, KIB_256));
        // A revolution and the 1.4 ms of the transfer, and a skew now and then.
        assert!((44.0..50.0).contains(&rate), "{rate} MB/s");
        let small = throughput(&d, 1, 100, |_, i| write(GIB + i * 4096, 4096));
        assert!((0.95..1.03).contains(&small), "{small} MB/s");
    });
}

#[test]
fn random_reads_are_plausible_for_the_drive() {
    simulate(|| {
        let d = disk(|_| {});
        let four = throughput(&d, 1, 1000, |_, _| read(anywhere(68 * GIB, 4096), 4096));
        let iops = four * 1e6 / 4096.0;
        // Over half of the disk: overhead, 2.6 ms of seeking, 2 ms of rotation.
        assert!((185.0..235.0).contains(&iops), "{iops} IOPS");
        let three = throughput(&d, 3, 1000, |_, _| read(anywhere(12 * GIB, KIB_256), KIB_256));
        assert!((55.0..75.0).contains(&three), "{three} MB/s");
    });
}

#[test]
fn choosing_the_nearest_pays_with_the_queue() {
    let run = |policy: QueuePolicy, tasks: u64| {
        simulate(move || {
            let d = disk(|p| p.queue_policy = policy);
            let mb =
                throughput(&d, tasks, 3000 / tasks, |_, _| read(anywhere(100 * GIB, 4096), 4096));
            mb * 1e6 / 4096.0
        })
    };
    let one = run(QueuePolicy::Sptf, 1);
    assert!((run(QueuePolicy::Fifo, 1) - one).abs() < 1e-9);
    let (sptf_3, fifo_3) = (run(QueuePolicy::Sptf, 3), run(QueuePolicy::Fifo, 3));
    let (sptf_32, fifo_32) = (run(QueuePolicy::Sptf, 32), run(QueuePolicy::Fifo, 32));
    assert!(sptf_3 > fifo_3 * 1.15, "{sptf_3} {fifo_3}");
    assert!(sptf_32 > fifo_32 * 1.8, "{sptf_32} {fifo_32}");
    assert!((300.0..600.0).contains(&sptf_32), "{sptf_32}");
}

#[test]
fn nobody_is_passed_over_for_longer_than_the_limit() {
    simulate(|| {
        let d = disk(|p| p.queue_age_limit_ms = 100.0);
        let near = Arc::clone(&d);
        for t in 0..8 {
            let near = Arc::clone(&near);
            spawn(format!("near {t}"), move || {
                for _ in 0..500 {
                    let at = anywhere(64 << 20, 4096);
                    near.submit(write(at, 4096)).wait().unwrap();
                }
            });
        }
        sleep(Duration::from_millis(50));
        let far = time(&d, read(130 * GIB, 4096));
        assert!(far < 130_000_000, "{far}");
    });
}

#[test]
fn a_write_cache_answers_at_link_rate_and_a_flush_pays_for_it() {
    simulate(|| {
        let d = disk(|p| p.write_cache = WriteCacheMode::On);
        assert!(d.info().volatile_cache);
        let took = time(&d, write(GIB, KIB_256));
        assert_eq!(took, OVERHEAD + 873_813, "overhead and 256 KiB at 300 MB/s");
        let flush = time(&d, Request::Flush);
        assert!(flush > OVERHEAD + 500_000, "{flush}");
        assert_eq!(time(&d, Request::Flush), OVERHEAD);
        let data = steadfast_block::pattern::bytes(2, 0, 512).into();
        let fua = time(&d, Request::Write { offset: 9 * GIB, data, fua: true });
        assert!(fua > 1_000_000, "{fua}");
    });
}

#[test]
fn a_full_write_cache_runs_at_media_rate() {
    simulate(|| {
        let d = disk(|p| p.write_cache = WriteCacheMode::On);
        let rate = throughput(&d, 1, 2000, |_, i| write(i * KIB_256, KIB_256));
        assert!((150.0..180.0).contains(&rate), "{rate} MB/s");
    });
}

#[test]
fn a_write_cache_sorts_random_writes() {
    let run = |cache| {
        simulate(move || {
            let d = disk(|p| p.write_cache = cache);
            let mb = throughput(&d, 1, 6000, |_, _| write(anywhere(100 * GIB, 4096), 4096));
            mb * 1e6 / 4096.0
        })
    };
    let (off, on) = (run(WriteCacheMode::Off), run(WriteCacheMode::On));
    assert!((120.0..220.0).contains(&off), "{off}");
    assert!(on > 2.0 * off, "{on} {off}");
}

#[test]
fn buffered_writes_get_their_turn_among_reads() {
    simulate(|| {
        let d = disk(|p| p.write_cache = WriteCacheMode::On);
        for t in 0..4 {
            let d = Arc::clone(&d);
            spawn(format!("reader {t}"), move || {
                for _ in 0..2000 {
                    d.submit(read(anywhere(GIB, 4096), 4096)).wait().unwrap();
                }
            });
        }
        // The second does not fit beside the first, although the buffer is less than half full.
        time(&d, write(100 * GIB, 3 << 20));
        // The age limit, and the transfer of both.
        let took = time(&d, write(110 * GIB, 6 << 20));
        assert!(took < 600_000_000, "{took}");
        sleep(Duration::from_millis(1500));
        let left = d.with_physics(|drive| drive.runs_buffered());
        assert_eq!(left, 0);
    });
}

#[test]
fn a_lying_cache_does_not_wait() {
    simulate(|| {
        let d = disk(|p| p.write_cache = WriteCacheMode::Lying);
        assert_eq!(d.promise(), FlushBehaviour::LyingFlush);
        assert!(d.info().volatile_cache);
        time(&d, write(GIB, KIB_256));
        assert_eq!(time(&d, Request::Flush), OVERHEAD);
        let data = steadfast_block::pattern::bytes(2, 0, 512).into();
        let fua = time(&d, Request::Write { offset: 9 * GIB, data, fua: true });
        assert!(fua < OVERHEAD + 2000, "{fua}");
    });
}

#[test]
fn the_same_run_twice_gives_the_same_trace() {
    let run = |cache| {
        let (mb, stats, trace) = steadfast_runtime::Sim::new(3)
            .traced()
            .run_full(move || {
                let d = disk(|p| p.write_cache = cache);
                throughput(&d, 5, 200, |_, i| {
                    let at = anywhere(20 * GIB, 4096);
                    match i % 7 {
                        0 => Request::Flush,
                        1..4 => read(at, 4096 << (i % 5)),
                        _ => write(at, 4096 << (i % 6)),
                    }
                })
            })
            .unwrap();
        (mb.to_bits(), stats, trace)
    };
    for cache in [WriteCacheMode::Off, WriteCacheMode::On, WriteCacheMode::Lying] {
        assert!(run(cache) == run(cache));
    }
}

#[test]
fn contents_are_kept_exchanged_and_checked() {
    simulate(|| {
        let d = disk(|_| {});
        d.write(8192, steadfast_block::pattern::bytes(4, 0, 4096).into()).unwrap();
        let before = d.contents();
        d.write(8192, vec![1; 4096].into()).unwrap();
        assert_eq!(d.read(8192, 4096).unwrap(), vec![1; 4096]);
        d.set_contents(before).unwrap();
        assert_eq!(d.read(8192, 4096).unwrap(), steadfast_block::pattern::bytes(4, 0, 4096));
        let wrong = d.set_contents(Store::new(512)).unwrap_err();
        assert!(wrong.to_string().starts_with("sda: contents of 512 bytes"), "{wrong}");
    });
}

#[test]
fn works_in_real_time_and_ends_with_the_device() {
    let d = Arc::new(Hdd::new("sdr", &HddParams::default()).unwrap());
    let start = now();
    d.write(0, vec![7; 4096].into()).unwrap();
    assert_eq!(d.read(0, 4096).unwrap(), vec![7; 4096]);
    assert!(nanos_since(start) > OVERHEAD);
    // Queue more than can be done, drop the device: every request is answered all the same.
    let waiting: Vec<_> = (0..20).map(|i| d.submit(read(i * 5 * GIB, 4096))).collect();
    drop(d);
    for completion in waiting {
        let answer = completion.wait();
        assert!(matches!(answer, Ok(_) | Err(steadfast_block::BlockError::Gone { .. })));
    }
}

#[test]
fn parameters_read_from_toml_and_nonsense_is_refused() {
    let p: HddParams = toml::from_str("write_cache = \"lying\"\nheads = 4").unwrap();
    assert_eq!((p.write_cache, p.heads, p.rpm), (WriteCacheMode::Lying, 4, 15_000));
    assert!(toml::from_str::<HddParams>("write_cach = \"on\"").is_err());
    let text = toml::to_string(&HddParams::default()).unwrap();
    assert_eq!(toml::from_str::<HddParams>(&text).unwrap(), HddParams::default());
    let refused = |change: fn(&mut HddParams)| {
        let mut p = HddParams::default();
        change(&mut p);
        Hdd::new("x", &p).map(drop).unwrap_err().to_string()
    };
    assert!(refused(|p| p.rpm = 0).contains("rpm = 0"));
    assert!(refused(|p| p.seek_read_average_ms = 9.0).contains("seek_read_*"));
    assert!(refused(|p| p.track_skew_ms = 4.0).contains("less than a revolution"));
    assert!(refused(|p| p.interface_mb_per_s = f64::INFINITY).contains("interface"));
    assert!(refused(|p| p.sectors = 0).contains("sectors"));
}

/// Two cylinders of two surfaces with ten sectors a track, 1 ms each.
fn measured_params(change: impl FnOnce(&mut HddParams)) -> HddParams {
    let mut p = HddParams {
        rpm: 6000,
        heads: 2,
        sectors: 40,
        zone_table: vec![zone::zone()],
        seek_table: vec![(1, 2.5)],
        head_switch_ms: Some(1.5),
        write_settle_ms: Some(0.25),
        seek_variation_ms: 0.0,
        controller_overhead_ms: 0.0,
        interface_mb_per_s: 1e5,
        look_ahead: false,
        read_segments: 2,
        segment_sectors: Some(20),
        ..HddParams::default()
    };
    change(&mut p);
    p
}

fn measured(change: impl FnOnce(&mut HddParams)) -> Arc<Hdd> {
    Arc::new(Hdd::new("sda", &measured_params(change)).unwrap())
}

/// Sectors that begin with `first`, as a request in bytes.
fn sectors(first: u64, n: u64) -> Request {
    read(first * 512, n * 512)
}

const SECTOR_NS: u64 = 1_000_000;

#[test]
fn a_head_switch_is_no_seek() {
    simulate(|| {
        // Over the skew of two sectors the head is ready after one and a half.
        let d = measured(|_| {});
        time(&d, sectors(9, 1));
        assert_eq!(time(&d, sectors(10, 1)) / 1000, 3 * SECTOR_NS / 1000);
        // A settling more, and it is not: a revolution is lost.
        let d = measured(|p| p.write_settle_ms = Some(0.75));
        time(&d, write(9 * 512, 512));
        assert_eq!(time(&d, write(10 * 512, 512)) / 1000, 13 * SECTOR_NS / 1000);
    });
    simulate(|| {
        // Over a skew of one sector the head is ready for a write that settles sooner, and not for
        // a read.
        let crossing = |request: fn(u64) -> Request| {
            let d = measured(|p| {
                p.zone_table[0].track_skew = 1.0;
                p.write_settle_ms = Some(-0.75);
            });
            time(&d, request(9));
            time(&d, request(10)) / 1000
        };
        assert_eq!(crossing(|sector| write(sector * 512, 512)), 2 * SECTOR_NS / 1000);
        assert_eq!(crossing(|sector| sectors(sector, 1)), 12 * SECTOR_NS / 1000);
    });
    let p = measured_params(|p| p.write_settle_ms = Some(0.75));
    let warnings = p.warnings();
    assert!(warnings[0].starts_with("track skew 2 ms, but the head is ready"), "{warnings:?}");
    assert_eq!(measured_params(|_| {}).warnings(), Vec::<String>::new());
}

#[test]
fn a_slow_link_has_its_say() {
    simulate(|| {
        // A sector takes 2 ms on the link, twice as long as on the medium.
        let slow = 512e-6 / 2e-3;
        let d = measured(|p| p.interface_mb_per_s = slow);
        time(&d, sectors(9, 1));
        // The answer comes 2 ms after the sector: eight until sector 0, which is read in one.
        let whole = time(&d, sectors(0, 4));
        assert_eq!(whole / 1000, (8 + 1 + 4 * 2) * SECTOR_NS / 1000);
        // With a water mark at the end all four are read before.
        let d = measured(|p| (p.interface_mb_per_s, p.read_water_mark) = (slow, 1.0));
        time(&d, sectors(9, 1));
        let marked = time(&d, sectors(0, 4));
        assert_eq!((marked - whole) / 1000, 3 * SECTOR_NS / 1000);
    });
    simulate(|| {
        // At 8 ms each the second sector is not there when it passes, nor is the third.
        let d = measured(|p| p.interface_write_mb_per_s = Some(512e-6 / 8e-3));
        let took = time(&d, write(0, 3 * 512));
        assert_eq!(took / 1000, (10 + 11 + 11 + 1) * SECTOR_NS / 1000);
    });
}

#[test]
fn a_command_costs_what_its_kind_and_the_one_before_say() {
    simulate(|| {
        let d = measured(|p| {
            p.overheads.read_hit = Some(0.5);
            p.overheads.read_hit_after_write = Some(0.75);
            p.overheads.read_end = 0.125;
            p.write_cache = WriteCacheMode::On;
            p.overheads.write = Some(0.25);
            p.overheads.write_after_write = Some(0.375);
        });
        time(&d, sectors(0, 4));
        assert_eq!(time(&d, sectors(1, 1)) / 1000, 625);
        assert_eq!(time(&d, write(20 * 512, 512)) / 1000, 250);
        assert_eq!(time(&d, write(30 * 512, 512)) / 1000, 375);
        assert_eq!(time(&d, sectors(1, 1)) / 1000, 875);
    });
}

#[test]
fn a_write_that_finds_the_only_run_taken_waits_for_the_medium() {
    simulate(|| {
        let one = |runs| {
            let d = measured(|p| (p.write_cache, p.write_runs) = (WriteCacheMode::On, runs));
            time(&d, write(0, 512));
            (time(&d, write(512, 512)), time(&d, write(30 * 512, 512)))
        };
        let (continued, apart) = one(Some(1));
        assert!(continued < SECTOR_NS && apart > SECTOR_NS, "{continued} {apart}");
        let (_, apart) = one(None);
        assert!(apart < SECTOR_NS, "{apart}");
    });
}

#[test]
fn what_passes_on_the_way_is_kept_and_a_read_begins_where_the_head_lands() {
    simulate(|| {
        let d = measured(|p| p.keep_passed = true);
        time(&d, sectors(9, 1));
        time(&d, sectors(5, 1));
        assert!(time(&d, sectors(1, 4)) < SECTOR_NS, "they passed before sector 5");
        // The head comes from sector 4; the link's moment makes it miss 5: 6 to 9, then 0 to 5.
        let rest = |on_arrival| {
            let d = measured(|p| p.read_on_arrival = on_arrival);
            time(&d, sectors(4, 1));
            time(&d, sectors(0, 10)) / 1000
        };
        assert_eq!(rest(true), 11 * SECTOR_NS / 1000);
        assert_eq!(rest(false), 15 * SECTOR_NS / 1000);
    });
}

#[test]
fn reading_on_ends_where_it_should() {
    let cached = |until: LookAheadUntil, sector: u64| {
        simulate(move || {
            let d = measured(|p| (p.look_ahead, p.look_ahead_until) = (true, until));
            time(&d, sectors(0, 2));
            sleep(Duration::from_millis(300));
            time(&d, sectors(sector, 1)) < SECTOR_NS / 2
        })
    };
    use LookAheadUntil::{Cylinder, Sectors, Track, Tracks};
    for (until, last) in [(Track, 9), (Tracks, 9), (Cylinder, 19), (Sectors, 21)] {
        assert!(cached(until, last), "{until:?} {last}");
        assert!(!cached(until, last + 1), "{until:?} {}", last + 1);
    }
}

#[test]
fn measured_tables_that_make_no_sense_are_refused() {
    let refused = |change: fn(&mut HddParams)| {
        Hdd::new("x", &measured_params(change)).map(drop).unwrap_err().to_string()
    };
    assert!(refused(|p| p.sectors = 41).contains("hold 40"));
    assert!(refused(|p| p.zone_table[0].cylinders = 0).contains("zone 1"));
    assert!(refused(|p| p.zone_table[0].track_skew = 10.0).contains("one track"));
    assert!(refused(|p| p.zone_table[0].spares = 99).contains("holds no data"));
    assert!(refused(|p| p.zone_table[0].cylinders = u32::MAX).contains("cylinders"));
    assert!(refused(|p| p.zone_table.push(p.zone_table[0].clone())).contains("zone 2"));
    assert!(refused(|p| p.seek_table = vec![(2, 1.0), (1, 1.0)]).contains("seek_table"));
    assert!(refused(|p| p.overheads.read_end = f64::NAN).contains("overheads"));
    assert!(refused(|p| p.read_water_mark = 1.5).contains("read_water_mark"));
    let small = measured_params(|_| {}).scaled(1, 2);
    small.check().unwrap();
    assert_eq!((small.zone_table[0].cylinders, small.sectors), (1, 16));
}
