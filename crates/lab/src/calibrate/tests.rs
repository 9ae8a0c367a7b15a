//! Models with hidden parameters, in virtual time: what they were is found again.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use steadfast_block::{Completion, Request};
use steadfast_devices::filter::{Effect, Fault, FaultRule, Ops, ReadOnly};
use steadfast_devices::model::hdd::{QueuePolicy, WriteCacheMode};
use steadfast_devices::model::parameters::ParameterTable;
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{EmmcParams, HddParams, NvramParams, SsdParams};
use steadfast_devices::source::Ram;
use steadfast_runtime::sleep;

use super::probe::MIB;
use super::*;

/// Calibrates a model that nobody has told anything about.
fn calibrated(hidden: ModelParams, writes: bool) -> Calibration {
    // Of a disk the usual time leaves a few per cent to luck.
    let times = if matches!(hidden, ModelParams::Hdd(_)) { 5.0 } else { 1.0 };
    let options = Options { writes, seed: 5, bytes: u64::MAX, seconds: times * USUAL_SECONDS };
    let measured = Sim::new(77).run(move || {
        let stop = AtomicBool::new(false);
        let watch = Watch { progress: &|_, _| (), stop: &stop };
        measure(hidden.build("hidden").unwrap(), options, &watch)
    });
    let measured = measured.unwrap().unwrap();
    fit(&measured, &AtomicBool::new(false)).unwrap()
}

/// Each of these within 5 %, and the demerit under 2 %.
fn near(
    found: &Calibration,
    parameters: &[&str],
    wanted: &impl ParameterTable,
    is: &impl ParameterTable,
) {
    let mut wrong = Vec::new();
    for name in parameters {
        let (wanted, is) = (wanted.number(name).unwrap(), is.number(name).unwrap());
        if (is / wanted - 1.0).abs() > 0.05 {
            wrong.push(format!("{name}: {is} for {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let demerit = found.validation[0].demerit_percent;
    assert!(demerit < 2.0, "{demerit}\n{}", found.text());
}

#[test]
fn a_disk_that_is_only_read() {
    let hidden = HddParams {
        sectors: 1_953_525_168,
        rpm: 7200,
        heads: 4,
        sustained_outer_mb_per_s: 150.0,
        sustained_inner_mb_per_s: 75.0,
        seek_read_track_to_track_ms: 0.8,
        seek_read_average_ms: 8.5,
        seek_read_full_stroke_ms: 17.0,
        seek_write_track_to_track_ms: 1.0,
        seek_write_average_ms: 9.5,
        seek_write_full_stroke_ms: 18.5,
        track_skew_ms: 1.1,
        cylinder_skew_ms: 1.1,
        controller_overhead_ms: 0.3,
        ..HddParams::default()
    };
    let found = calibrated(ModelParams::Hdd(hidden.clone()), false);
    let ModelParams::Hdd(is) = &found.params else { panic!("{}", found.text()) };
    let main = [
        "sectors",
        "rpm",
        "sustained_outer_mb_per_s",
        "sustained_inner_mb_per_s",
        "seek_read_track_to_track_ms",
        "seek_read_average_ms",
        "seek_read_full_stroke_ms",
        "track_skew_ms",
        "controller_overhead_ms",
        "interface_mb_per_s",
        "read_cache_kb",
    ];
    near(&found, &main, &hidden, is);
}

#[test]
fn a_disk_that_is_written() {
    let hidden = HddParams {
        write_cache: WriteCacheMode::On,
        write_buffer_kb: 16384,
        ..HddParams::default()
    };
    let found = calibrated(ModelParams::Hdd(hidden.clone()), true);
    let ModelParams::Hdd(is) = &found.params else { panic!("{}", found.text()) };
    assert_eq!((is.write_cache, is.queue_policy), (WriteCacheMode::On, QueuePolicy::Sptf));
    let main = [
        "sectors",
        "rpm",
        "sustained_outer_mb_per_s",
        "sustained_inner_mb_per_s",
        "seek_read_track_to_track_ms",
        "seek_read_average_ms",
        "seek_read_full_stroke_ms",
        "seek_write_track_to_track_ms",
        "seek_write_average_ms",
        "seek_write_full_stroke_ms",
        "track_skew_ms",
        "controller_overhead_ms",
        "interface_mb_per_s",
        "read_cache_kb",
        "write_buffer_kb",
    ];
    near(&found, &main, &hidden, is);
}

#[test]
fn solid_state_disks() {
    let protected =
        SsdParams { sectors: 1 << 26, command_us: 8.0, read_us: 70.0, ..SsdParams::default() };
    let volatile = SsdParams {
        sectors: 1 << 26,
        interface_mb_per_s: 1800.0,
        command_us: 5.0,
        read_us: 60.0,
        channel_mb_per_s: 400.0,
        dies_per_channel: 16,
        program_us: 1500.0,
        write_cache: SsdCache::Volatile,
        flush_us: 700.0,
        write_buffer_kb: 16384,
        buffer_us: 15.0,
        ..SsdParams::default()
    };
    for hidden in [protected, volatile] {
        let found = calibrated(ModelParams::Ssd(hidden.clone()), true);
        let ModelParams::Ssd(is) = &found.params else { panic!("{}", found.text()) };
        assert_eq!(is.write_cache, hidden.write_cache);
        let main = [
            "sectors",
            "read_us",
            "command_us",
            "interface_mb_per_s",
            "channel_mb_per_s",
            "buffer_us",
            "program_us",
            "random_write_amplification",
            "write_buffer_kb",
            "flush_us",
        ];
        near(&found, &main, &hidden, is);
    }
}

#[test]
fn embedded_flash() {
    let off = EmmcParams {
        sectors: 1 << 25,
        read_access_us: 180.0,
        command_us: 30.0,
        open_groups: 16,
        erase_group_kb: 1024,
        ..EmmcParams::default()
    };
    let on = EmmcParams { cache: true, cache_kb: 2048, write_access_us: 400.0, ..off.clone() };
    for hidden in [off, on] {
        let found = calibrated(ModelParams::Emmc(hidden.clone()), true);
        let ModelParams::Emmc(is) = &found.params else { panic!("{}", found.text()) };
        assert_eq!(is.cache, hidden.cache);
        let mut main = vec![
            "sectors",
            "command_us",
            "read_access_us",
            "read_mb_per_s",
            "write_access_us",
            "write_mb_per_s",
            "erase_group_kb",
            "open_groups",
            "erase_ms",
        ];
        if hidden.cache {
            main.extend(["cache_kb", "flush_us"]);
        }
        near(&found, &main, &hidden, is);
    }
}

#[test]
fn a_memory_card() {
    let hidden = NvramParams {
        size_mib: 512,
        interrupt_us: 14.0,
        bus_clock_mhz: 100.0,
        descriptor_overhead_us: 4.0,
        ..NvramParams::default()
    };
    for writes in [false, true] {
        let found = calibrated(ModelParams::Nvram(hidden.clone()), writes);
        let ModelParams::Nvram(is) = &found.params else { panic!("{}", found.text()) };
        let main = ["size_mib", "interrupt_us", "bus_clock_mhz", "descriptor_overhead_us"];
        near(&found, &main, &hidden, is);
    }
}

/// Each of so many requests is held up by something else.
struct HeldUp(Arc<dyn BlockDevice>, AtomicUsize);

impl BlockDevice for HeldUp {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&self, request: Request) -> Completion {
        if self.1.fetch_add(1, Relaxed).is_multiple_of(25) {
            sleep(Duration::from_millis(3));
        }
        self.0.submit(request)
    }
}

/// A few accesses are late, and some are answered by the cache: neither are the extremes.
#[test]
fn a_file_on_a_disk_beside_something_else() {
    let hidden = HddParams { sectors: 1 << 22, rpm: 7200, ..HddParams::default() };
    let bytes = 600 * MIB;
    let options = Options { writes: false, seed: 5, bytes, seconds: USUAL_SECONDS };
    let measured = Sim::new(77).run(move || {
        let stop = AtomicBool::new(false);
        let watch = Watch { progress: &|_, _| (), stop: &stop };
        let disk: Arc<dyn BlockDevice> = ModelParams::Hdd(hidden).build("hidden").unwrap();
        measure(Arc::new(HeldUp(disk, AtomicUsize::new(0))), options, &watch)
    });
    let found = fit(&measured.unwrap().unwrap(), &AtomicBool::new(false)).unwrap();
    let ModelParams::Hdd(is) = &found.params else { panic!("{}", found.text()) };
    assert_eq!((is.rpm, is.sectors), (7200, bytes / 512));
    assert!(found.validation[0].demerit_percent < DEMERIT_MAX, "{}", found.text());
}

/// Also while the mix runs, and while a model is looked for.
#[test]
fn it_can_be_stopped_until_the_end() {
    let options = Options { writes: false, seed: 1, bytes: u64::MAX, seconds: 20.0 };
    let params = SsdParams { sectors: 1 << 20, ..SsdParams::default() };
    let run = |stop_at: &'static str| {
        let params = params.clone();
        let measured = Sim::new(3).run(move || {
            let stop = AtomicBool::new(false);
            let progress = |_, what: &str| stop.store(what == stop_at, Relaxed);
            let watch = Watch { progress: &progress, stop: &stop };
            measure(ModelParams::Ssd(params).build("slow").unwrap(), options, &watch)
        });
        measured.unwrap()
    };
    for at in ["round 1 of 3", "a mix that no figure is from", "the mix again"] {
        assert!(matches!(run(at), Err(CalibrateError::Interrupted)), "{at}");
    }
    let measured = run("").unwrap_or_else(|e| panic!("{e}"));
    assert!(matches!(fit(&measured, &AtomicBool::new(true)), Err(CalibrateError::Interrupted)));
}

/// Measures what `over` makes of a small SSD, for a short time. It is told when the second of the
/// rounds has begun.
fn failure(
    over: impl FnOnce(Arc<dyn BlockDevice>, Arc<AtomicBool>) -> Arc<dyn BlockDevice> + 'static,
) -> String {
    let options = Options { writes: false, seed: 1, bytes: u64::MAX, seconds: 20.0 };
    let params = SsdParams { sectors: 1 << 20, ..SsdParams::default() };
    let measured = Sim::new(3).run(move || {
        let stop = AtomicBool::new(false);
        let second = Arc::new(AtomicBool::new(false));
        let progress = |_, what: &str| second.store(what.starts_with("round 2"), Relaxed);
        let watch = Watch { progress: &progress, stop: &stop };
        let model: Arc<dyn BlockDevice> = ModelParams::Ssd(params).build("flaky").unwrap();
        measure(over(model, Arc::clone(&second)), options, &watch)
    });
    measured.unwrap().err().unwrap().to_string()
}

#[test]
fn a_device_that_disappears_or_fails_is_an_error() {
    let with = |effect| {
        failure(move |device, _| {
            let fault = Fault::new(device);
            fault.faults().add(FaultRule { skip: 900, ..FaultRule::new(Ops::ALL, effect) });
            Arc::new(fault)
        })
    };
    assert_eq!(with(Effect::Gone("unplugged".into())), "flaky: is gone: unplugged");
    assert!(with(Effect::Fail("bad sector".into())).ends_with("failed: bad sector"));
}

/// It is slower while somebody else uses it.
struct Busy(Arc<dyn BlockDevice>, Arc<AtomicBool>);

impl BlockDevice for Busy {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&self, request: Request) -> Completion {
        if self.1.load(Relaxed) {
            sleep(Duration::from_micros(300));
        }
        self.0.submit(request)
    }
}

#[test]
fn what_is_too_noisy_is_not_believed() {
    let text = failure(|device, second| Arc::new(Busy(device, second)));
    assert!(text.contains("too noisy to believe: 'random read 4 KiB'"), "{text}");
}

#[test]
fn small_and_read_only_devices_are_refused_before_anything_is_done() {
    let small = failure(|_, _| Arc::new(ReadOnly::new(Arc::new(Ram::new("r", 1 << 20)))));
    assert_eq!(small, "r: is too small: 1048576 bytes, calibration needs 33554432");
}

/// The file is what `--stack` takes, and the device in it the one that was judged.
#[test]
fn the_file_is_read_again_as_the_same_device() {
    let found = calibrated(ModelParams::Nvram(NvramParams::default()), false);
    let text = found.toml("mine");
    let setup = steadfast_setup::Setup::parse(&text, "mine.toml").unwrap();
    assert_eq!(setup.topology.devices["mine"].model(), Some(&found.params));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in ["# measured: random read 4 KiB", "# default, not measured", "# Demerit"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
