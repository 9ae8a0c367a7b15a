//! How fast power cuts are explored, and what recording costs: what `cargo xtask bench crash` runs.
//!
//! 1. **States.** The smallest workloads (sequences of up to two operations) are explored in this
//!    process by one task: recording, enumerating, recovering, judging and checking are all in the
//!    time; sequence by sequence with pruning and without, which must agree on every state. Of the
//!    same states a sample, spread evenly, is judged outside: one mount by the kernel
//!    on a loop device, which recovers it, all names and bytes read, unmounted, `e2fsck -fn`. The
//!    images are in memory; writing them is not counted.
//! 2. **Recording.** IOzone's engine runs on ext4 on a modelled flash disk, in virtual time, with
//!    every device and every acknowledgement recorded, and without, by turns.
//!
//! Processor time is that of this process and of the programs it starts; what the kernel's own
//! threads do for the peer (loop devices) is not in it.
//!
//! ```sh
//! cargo run --release -p steadfast-selftest --example crash_speed -- [--quick] [--json]
//! ```

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use steadfast_bench::iozone::{self, Call, CommandLine, Observer, Surroundings};
use steadfast_block::BlockDevice;
use steadfast_crash::e2fsck::E2fsck;
use steadfast_crash::explore::Plan;
use steadfast_crash::kernel::Kernel;
use steadfast_crash::states::StateBound;
use steadfast_devices::filter::record::{Record, RecordLog, Recording};
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{ModelParams, SsdParams};
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_runtime::{Nanos, Sim};
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::{Sequence, SmallMachine, explore_twice};

/// A folder in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";
/// At least so many states are judged outside.
const PEERS: u64 = 60;
/// States that a set-up of sequences of two operations has, at least: to spread the sample.
const STATES: u64 = 48_000;
/// The runs whose recording is timed: buffered and synchronous, small records and large ones.
const RUNS: [(&str, &str); 3] = [
    ("4 KiB, O_SYNC + O_DIRECT", "-M -o -c -e -t3 -T -I -s 4m -r 4k -i0 -i2"),
    ("256 KiB, O_SYNC + O_DIRECT", "-M -o -c -e -t3 -T -I -s 64m -r 256k -i0 -i2"),
    ("4 KiB, buffered", "-M -c -e -t3 -T -s 16m -r 4k -i0 -i2"),
];

type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asked = |name: &str| args.iter().any(|a| a == name);
    if let Some(other) = args.iter().find(|a| !["--quick", "--json"].contains(&a.as_str())) {
        println!("{other}: not --quick or --json");
        return ExitCode::from(2);
    }
    match measured(asked("--quick"), asked("--json")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn measured(quick: bool, json: bool) -> Outcome<()> {
    let small = Setup { block_size: 1024, ..Setup::PLAIN };
    let setups = [
        ("data=ordered", small),
        (
            "data=journal, external journal",
            Setup { data: DataMode::Journal, external: true, ..small },
        ),
    ];
    let states: Outcome<Vec<States>> =
        setups.into_iter().map(|(name, setup)| states(name, setup, quick)).collect();
    let rounds = if quick { 1 } else { 7 };
    let recording: Outcome<Vec<Cost>> =
        RUNS.iter().map(|(name, words)| recording(name, words, rounds)).collect();
    let (states, recording) = (states?, recording?);
    if json {
        let document = serde_json::json!({ "states": states, "recording": recording });
        println!("{}", serde_json::to_string_pretty(&document).map_err(|e| e.to_string())?);
    } else {
        print(&states, &recording, rounds);
    }
    Ok(())
}

/// Processor time used so far: by this process, and by its children that have ended.
fn cpu() -> (Duration, Duration) {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let own = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
    // The fields after the name, which ends at the last parenthesis, begin with the third.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(16 - 3).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    let per_second = rustix::param::clock_ticks_per_second();
    (own, Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

#[derive(serde::Serialize)]
struct States {
    setup: &'static str,
    distinct: u64,
    /// Of these, states that did not recover: one that recovery cannot distinguish from them had.
    pruned: u64,
    /// The same with pruning and without.
    agreed: u64,
    /// Of a state, in milliseconds.
    wall_ms: f64,
    cpu_ms: f64,
    per_minute_of_wall: f64,
    per_minute_of_cpu: f64,
    /// The same where each state recovers.
    unpruned_cpu_ms: f64,
    unpruned_per_minute_of_cpu: f64,
    /// `None` where the kernel cannot be asked.
    peer: Option<PeerCost>,
    peer_missing: Option<String>,
}

#[derive(serde::Serialize)]
struct PeerCost {
    states: usize,
    wall_ms_median: f64,
    cpu_ms_mean: f64,
}

fn states(name: &'static str, setup: Setup, quick: bool) -> Outcome<States> {
    let (bound, keep_every) = match quick {
        false => (StateBound::exhaustive(256, true, 16), STATES / PEERS),
        true => (StateBound::exhaustive(8, false, 1), 1000),
    };
    let plan = Plan { bound, ..Plan::EVERYWHERE };
    let machine = SmallMachine::new(setup)?;
    let twice =
        explore_twice(&machine, &Sequence::all(2), (&plan, keep_every), &|| cpu().0, &|_| ())?;
    for explored in [&twice.pruned, &twice.unpruned] {
        if explored.wrong() > 0 {
            return Err(format!("{name}: {explored}: {:#?}", explored.findings));
        }
    }
    if twice.differing > 0 {
        return Err(format!("{name}: {} states differ where they are pruned", twice.differing));
    }
    let distinct = twice.pruned.distinct as f64;
    let (wall, used) = (twice.pruned_time.wall.as_secs_f64(), twice.pruned_time.cpu.as_secs_f64());
    let unpruned = twice.unpruned_time.cpu.as_secs_f64();
    let peer = peer(&twice.pruned.kept);
    Ok(States {
        setup: name,
        distinct: twice.pruned.distinct,
        pruned: twice.pruned.pruned,
        agreed: twice.agreed,
        wall_ms: wall * 1e3 / distinct,
        cpu_ms: used * 1e3 / distinct,
        per_minute_of_wall: distinct / wall * 60.0,
        per_minute_of_cpu: distinct / used * 60.0,
        unpruned_cpu_ms: unpruned * 1e3 / distinct,
        unpruned_per_minute_of_cpu: distinct / unpruned * 60.0,
        peer_missing: peer.as_ref().err().cloned(),
        peer: peer.ok(),
    })
}

fn peer(states: &[Vec<Store>]) -> Outcome<PeerCost> {
    let kernel = Kernel::find_in(Path::new(MEMORY)).map_err(|e| e.to_string())?;
    let e2fsck = E2fsck::find().ok_or("e2fsck is not installed")?;
    let time = |state: &Vec<Store>| kernel.time(&e2fsck, &state[0], state.get(1));
    let before = cpu();
    let took: Result<Vec<Duration>, _> = states.iter().map(time).collect();
    let after = cpu();
    let used = (after.0 - before.0) + (after.1 - before.1);
    Ok(PeerCost {
        states: states.len(),
        wall_ms_median: median(&took?.iter().map(|t| t.as_secs_f64() * 1e3).collect::<Vec<_>>()),
        cpu_ms_mean: used.as_secs_f64() * 1e3 / states.len().max(1) as f64,
    })
}

fn median(values: &[f64]) -> f64 {
    steadfast_statistics::median(values).unwrap_or(0.0)
}

#[derive(serde::Serialize)]
struct Cost {
    run: &'static str,
    requests: usize,
    /// Processor time of a run, medians, in milliseconds.
    without_ms: f64,
    with_ms: f64,
    percent_more: f64,
}

fn recording(run: &'static str, words: &str, rounds: usize) -> Outcome<Cost> {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let CommandLine::Run(options) = iozone::parse(&words).map_err(|e| e.to_string())? else {
        return Err(format!("{run}: not a run"));
    };
    let (mut with, mut without, mut requests) = (Vec::new(), Vec::new(), 0);
    // The memory that the first run asks the host for stays with the process.
    let first = options.clone();
    Sim::new(1).run(move || simulate(&first, true)).map_err(|e| e.to_string())??;
    for round in 0..rounds {
        // Who is first changes.
        for record in [round % 2 == 0, round % 2 != 0] {
            let options = options.clone();
            let before = cpu().0;
            let ran = Sim::new(1).run(move || simulate(&options, record));
            let recording = ran.map_err(|e| e.to_string())??;
            let used = (cpu().0 - before).as_secs_f64() * 1e3;
            requests += recording.events().len();
            if record { with.push(used) } else { without.push(used) }
        }
    }
    let (with, without) = (median(&with), median(&without));
    let percent_more = (with / without - 1.0) * 100.0;
    let requests = requests / rounds;
    Ok(Cost { run, requests, without_ms: without, with_ms: with, percent_more })
}

/// Each acknowledgement becomes a note.
struct Notes(RecordLog);

impl Observer for Notes {
    fn started(&self, call: &Call<'_>) {
        self.0.note(1, [call.child as u64, 0, 0]);
    }

    fn finished(&self, call: &Call<'_>, _: Nanos, durable: bool) {
        self.0.note(2, [call.child as u64, durable.into(), 0]);
    }

    fn synced(&self, _: Option<&str>, _: Nanos, _: Nanos) {
        self.0.note(3, [0; 3]);
    }
}

/// One run, and what was recorded: who explores it gets that.
fn simulate(options: &iozone::Options, record: bool) -> Outcome<Recording> {
    let words = |e: &dyn std::fmt::Display| e.to_string();
    let params = SsdParams {
        sectors: (1 << 30) / 512,
        write_cache: SsdCache::Volatile,
        ..SsdParams::default()
    };
    let model = ModelParams::Ssd(params).build("disk").map_err(|e| words(&e))?;
    let log = RecordLog::new();
    let device = Arc::clone(&model) as Arc<dyn BlockDevice>;
    let device: Arc<dyn BlockDevice> =
        if record { Arc::new(Record::new(device, &log)) } else { device };
    make(&device, &Options::random(1_700_000_000)).map_err(|e| words(&e))?;
    let fs = Ext4::mount(device, MountOptions::default()).map_err(|e| words(&e))?;
    let notes: Option<Arc<dyn Observer>> =
        if record { Some(Arc::new(Notes(log.clone()))) } else { None };
    iozone::run(fs.clone(), "", options, &Surroundings::default(), notes).map_err(|e| words(&e))?;
    fs.unmount().map_err(|e| words(&e))?;
    Ok(log.take())
}

fn print(states: &[States], recording: &[Cost], rounds: usize) {
    println!("Crash states: recorded, recovered, judged and checked in this process by one task;");
    println!("beside it one kernel mount, walk, unmount and e2fsck -fn of a sample of them.\n");
    println!(
        "| smallest workloads, two operations | distinct states | pruned | a minute a core, \
         unpruned | a minute a core | by wall | state, CPU | peer's sample | peer, wall (median) | \
         peer, CPU | x wall | x CPU |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for s in states {
        let (minute, wall) = (s.per_minute_of_cpu, s.per_minute_of_wall);
        let peer = match &s.peer {
            Some(p) => format!(
                "{} | {:.1} ms | {:.1} ms | {:.0} | {:.0}",
                p.states,
                p.wall_ms_median,
                p.cpu_ms_mean,
                p.wall_ms_median / s.wall_ms,
                p.cpu_ms_mean / s.cpu_ms
            ),
            None => format!("none: {} | - | - | - | -", s.peer_missing.as_deref().unwrap_or("")),
        };
        println!(
            "| {} | {} | {} | {:.0} | {minute:.0} | {wall:.0} | {:.3} ms | {peer} |",
            s.setup, s.distinct, s.pruned, s.unpruned_per_minute_of_cpu, s.cpu_ms
        );
    }
    println!(
        "\nRecording: processor time of a simulated IOzone run; medians of {rounds} rounds.\n"
    );
    println!("| run | requests recorded | without | with | more |");
    println!("|---|--:|--:|--:|--:|");
    for r in recording {
        println!(
            "| {} | {} | {:.0} ms | {:.0} ms | {:.1} % |",
            r.run, r.requests, r.without_ms, r.with_ms, r.percent_more
        );
    }
}
