//! How fast mirrors are, beside what they are made of:
//! `cargo run --release -p steadfast-volume --example speed -- FOLDER [ROUNDS [PART]]`, or
//! `cargo xtask bench volume`. FOLDER holds the image files; it should be on a disk. With `-` there
//! are none, only what needs no disk is compared, and each comparison is a line of JSON: this is
//! what `cargo xtask bench volume --md` asks for. PART: comparisons with this in their name only.
//!
//! Each side of a comparison does the same requests, by turns, each round the other one first.

// It is for people.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::model::{Model, Ssd, SsdParams};
use steadfast_devices::source::{Direct, FileDevice, FileOptions, Ram};
use steadfast_statistics::median;
use steadfast_volume::{
    Contents, Mirror, MirrorOptions, NewLeg, Policies, ReadPolicy, create_mirror,
};

type Device = Arc<dyn BlockDevice>;
type Failure = Box<dyn std::error::Error>;

const MIB: u64 = 1 << 20;
/// Bytes of a leg: with room for checksums of small regions.
const LEG: u64 = 300 * MIB;
/// Bytes of a volume, and what is used of a device by itself.
const VOLUME: u64 = 256 * MIB;
/// Bytes of a region.
const REGION: u32 = 64 << 10;
const BLOCK: u64 = 4096;

/// What is done to a device in one turn.
#[derive(Clone, Copy)]
struct Load {
    write: bool,
    bytes: u64,
    random: bool,
    tasks: u64,
    /// Requests of each task.
    requests: u64,
}

const fn load(write: bool, bytes: u64, random: bool, tasks: u64, requests: u64) -> Load {
    Load { write, bytes, random, tasks, requests }
}

/// One comparison.
struct Case {
    what: &'static str,
    alone: Device,
    /// The same, if it is a mirror too.
    other: Option<Mirror>,
    mirror: Mirror,
    load: Load,
    /// Before each turn of a mirror.
    before: fn(&Mirror) -> Result<(), Failure>,
}

fn nothing(_: &Mirror) -> Result<(), Failure> {
    Ok(())
}

/// Every region that was written becomes clean.
fn clean(mirror: &Mirror) -> Result<(), Failure> {
    (0..3).try_for_each(|_| Ok(mirror.tick()?))
}

/// Every region was never written.
fn unwritten(mirror: &Mirror) -> Result<(), Failure> {
    Ok(mirror.discard(0, VOLUME)?)
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(folder), rounds) = (args.next(), args.next().map_or(Ok(7), |n| n.parse())) else {
        println!("usage: speed FOLDER [ROUNDS [PART]]");
        return ExitCode::from(2);
    };
    let Ok(rounds @ 1..) = rounds else {
        println!("ROUNDS is a number from 1");
        return ExitCode::from(2);
    };
    let part = args.next().unwrap_or_default();
    let wanted = |mut cases: Vec<Case>| {
        cases.retain(|case| case.what.contains(&part));
        cases
    };
    let done = match folder.as_str() {
        "-" => in_memory().and_then(|cases| as_json(&wanted(cases), rounds)),
        folder => cases(Path::new(folder)).and_then(|cases| compared(&wanted(cases), rounds)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn ram(name: &str) -> Device {
    Arc::new(Ram::new(name, LEG).persistent())
}

/// An image file that is written past the host's page cache, all of it allocated.
fn file(folder: &Path, name: &str) -> Result<Device, Failure> {
    let path = folder.join(name);
    // OK to ignore: it need not be there.
    let _ = std::fs::remove_file(&path);
    let options = FileOptions { direct: Direct::IfPossible, ..FileOptions::default() };
    let device = FileDevice::create(&path, LEG, &options)?;
    if !device.direct() {
        return Err(format!("{}: cannot be read past the host's page cache", path.display()).into());
    }
    // Its name goes at once, so that nothing stays however this ends.
    std::fs::remove_file(&path)?;
    let zeros = Bytes::from(vec![0; MIB as usize]);
    (0..LEG / MIB).try_for_each(|n| device.write(n * MIB, zeros.clone().into()))?;
    device.flush()?;
    Ok(Arc::new(device))
}

fn ssd(name: &str) -> Result<Device, Failure> {
    let params = SsdParams { sectors: LEG / 512, ..SsdParams::default() };
    let model = Ssd::new(name, &params)?;
    debug_assert_eq!(model.info().size, LEG);
    let model: Arc<dyn Model> = Arc::new(model);
    Ok(model)
}

/// A mirror of which all was written once.
fn mirror(legs: &[(Device, bool)], read: ReadPolicy) -> Result<Mirror, Failure> {
    mirror_with(legs, read, false)
}

/// The same with checksums, or without.
fn mirror_with(
    legs: &[(Device, bool)],
    read: ReadPolicy,
    checksums: bool,
) -> Result<Mirror, Failure> {
    let legs: Vec<NewLeg> = legs
        .iter()
        .map(|(device, volatile)| NewLeg {
            device: Arc::clone(device),
            volatile: *volatile,
            partial: false,
            force: true,
        })
        .collect();
    let options = MirrorOptions {
        size: Some(VOLUME),
        region_bytes: Some(REGION),
        policies: Policies { read, ..Policies::default() },
        contents: Contents::Same,
        checksums,
        ..MirrorOptions::default()
    };
    let mirror = create_mirror("speed", &legs, &options)?;
    let data = Bytes::from(vec![7; MIB as usize]);
    (0..VOLUME / MIB).try_for_each(|n| mirror.write(n * MIB, data.clone().into()))?;
    mirror.flush()?;
    Ok(mirror)
}

fn filled(device: Device) -> Result<Device, Failure> {
    let data = Bytes::from(vec![7; MIB as usize]);
    (0..VOLUME / MIB).try_for_each(|n| device.write(n * MIB, data.clone().into()))?;
    device.flush()?;
    Ok(device)
}

fn case(what: &'static str, alone: &Device, mirror: &Mirror, load: Load) -> Case {
    let (alone, mirror) = (Arc::clone(alone), mirror.clone());
    Case { what, alone, other: None, mirror, load, before: nothing }
}

/// Reads with a leg in memory preferred, beside memory.
fn preferred(disks: [Device; 2], memory: &Device) -> Result<Vec<Case>, Failure> {
    let [a, b] = disks;
    let legs = [(a, false), (b, false), (ram("ram"), true)];
    let preferred = mirror(&legs, ReadPolicy::Preferred(2))?;
    clean(&preferred)?;
    let random = |tasks| load(false, BLOCK, true, tasks, 200_000);
    let sequential = load(false, 128 << 10, false, 1, 2_000);
    Ok(vec![
        case("read 4k, RAM leg preferred : RAM", memory, &preferred, random(1)),
        case("the same, two tasks", memory, &preferred, random(2)),
        case("read 128k in sequence : RAM", memory, &preferred, sequential),
    ])
}

/// Writes to two modelled disks, beside one; the states of their regions last.
fn two_models() -> Result<Vec<Case>, Failure> {
    let model = filled(ssd("ssd")?)?;
    let two = mirror(&[(ssd("ssd0")?, false), (ssd("ssd1")?, false)], ReadPolicy::First)?;
    let sequential = load(true, 64 << 10, false, 1, 400);
    let random = load(true, BLOCK, true, 1, 1_000);
    Ok(vec![
        case("write 64k, two modelled SSDs : one", &model, &two, sequential),
        case("write 4k, two modelled SSDs : one", &model, &two, random),
        Case {
            before: clean,
            ..case("write 4k, modelled SSDs, clean : one", &model, &two, random)
        },
        Case {
            before: unwritten,
            ..case("write 4k, modelled SSDs, unwritten : one", &model, &two, random)
        },
    ])
}

/// What the region map costs a write to memory.
fn dirty_in_memory(memory: &Device) -> Result<Case, Failure> {
    let one = mirror(&[(ram("one"), false)], ReadPolicy::First)?;
    let random = load(true, BLOCK, true, 1, 50_000);
    Ok(case("write 4k, one leg in RAM, dirty : RAM", memory, &one, random))
}

/// What can be compared without a disk.
fn in_memory() -> Result<Vec<Case>, Failure> {
    let memory = filled(ram("alone"))?;
    let mut cases = preferred([ram("a"), ram("b")], &memory)?;
    cases.append(&mut two_models()?);
    cases.push(dirty_in_memory(&memory)?);
    Ok(cases)
}

fn cases(folder: &Path) -> Result<Vec<Case>, Failure> {
    let first = ReadPolicy::First;
    let memory = filled(ram("alone"))?;
    let disk = filled(file(folder, "alone")?)?;
    let one_on_disk = mirror(&[(file(folder, "one")?, false)], first)?;
    let with_memory = mirror(&[(file(folder, "c")?, false), (ram("leg"), true)], first)?;
    let two_on_disk = mirror(&[(file(folder, "d")?, false), (file(folder, "e")?, false)], first)?;
    let sequential = load(true, 64 << 10, false, 1, 400);
    let random = load(true, BLOCK, true, 1, 1_000);
    let one = |what, before| Case { before, ..case(what, &disk, &one_on_disk, random) };
    let mut cases = preferred([file(folder, "a")?, file(folder, "b")?], &memory)?;
    cases.extend(two_models()?.into_iter().take(2));
    cases.push(case("write 64k, disk and RAM : disk", &disk, &with_memory, sequential));
    cases.push(case("write 64k, two files of a disk : one", &disk, &two_on_disk, sequential));
    cases.push(dirty_in_memory(&memory)?);
    cases.push(one("write 4k, on disk, dirty : disk", nothing));
    cases.push(one("write 4k, on disk, clean : disk", clean));
    cases.push(one("write 4k, on disk, unwritten : disk", unwritten));
    cases.append(&mut of_checksums(folder)?);
    Ok(cases)
}

/// Mirrors with checksums beside the same ones without.
fn of_checksums(folder: &Path) -> Result<Vec<Case>, Failure> {
    let first = ReadPolicy::First;
    let in_memory = |checksums| mirror_with(&[(ram("m"), false)], first, checksums);
    let on_disk =
        |name: &str, checksums| mirror_with(&[(file(folder, name)?, false)], first, checksums);
    let memory = [in_memory(true)?, in_memory(false)?];
    let disk = [on_disk("f", true)?, on_disk("g", false)?];
    memory.iter().chain(&disk).try_for_each(clean)?;
    let case = |what, [with, without]: &[Mirror; 2], load, before| Case {
        what,
        alone: Arc::new(without.clone()),
        other: Some(without.clone()),
        mirror: with.clone(),
        load,
        before,
    };
    let (read, write) = (false, true);
    let small = BLOCK;
    let (many, few) = (50_000, 1_000);
    Ok(vec![
        case(
            "read 4k in RAM, checksums : without",
            &memory,
            load(read, small, true, 1, many),
            nothing,
        ),
        case(
            "read 128k in RAM, checksums : without",
            &memory,
            load(read, 128 << 10, false, 1, 2_000),
            nothing,
        ),
        case(
            "write 4k in RAM, dirty, sums : without",
            &memory,
            load(write, small, true, 1, many),
            nothing,
        ),
        case(
            "read 4k on disk, checksums : without",
            &disk,
            load(read, small, true, 1, few),
            nothing,
        ),
        case(
            "write 4k, disk, dirty, sums : without",
            &disk,
            load(write, small, true, 1, few),
            nothing,
        ),
        case(
            "write 4k, disk, clean, sums : without",
            &disk,
            load(write, small, true, 1, few),
            clean,
        ),
        case(
            "write 4k, unwritten, sums : without",
            &disk,
            load(write, small, true, 1, few),
            unwritten,
        ),
    ])
}

/// Does the load; microseconds a request.
fn turn(device: &Device, load: Load, seed: u64) -> Result<f64, Failure> {
    let begun = Instant::now();
    let outcome: Result<Vec<()>, String> = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..load.tasks)
            .map(|task| scope.spawn(move || one_task(device, load, seed * 64 + task)))
            .collect();
        // OK to unwrap: a task that panics is a bug of this program.
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    });
    outcome?;
    Ok(begun.elapsed().as_secs_f64() * 1e6 / (load.tasks * load.requests) as f64)
}

fn one_task(device: &Device, load: Load, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let places = VOLUME / load.bytes;
    let data = Bytes::from(vec![9; load.bytes as usize]);
    for n in 0..load.requests {
        let at = if load.random { rng.below(places) } else { n % places } * load.bytes;
        let done = match load.write {
            true => device.write(at, data.clone().into()),
            false => device.read(at, load.bytes).map(|bytes| drop(std::hint::black_box(bytes))),
        };
        done.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Microseconds a request of each round: the mirror's, and of what it is compared with.
fn rounds_of(case: &Case, rounds: u64) -> Result<[Vec<f64>; 2], Failure> {
    let mirror: Device = Arc::new(case.mirror.clone());
    let mut sides = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for side in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let (device, prepared) = match side {
                0 => (&mirror, Some(&case.mirror)),
                _ => (&case.alone, case.other.as_ref()),
            };
            prepared.map_or(Ok(()), case.before)?;
            let time = turn(device, case.load, round)?;
            // The first one warms up.
            if round > 0 {
                sides[side].push(time);
            }
        }
    }
    Ok(sides)
}

fn compared(cases: &[Case], rounds: u64) -> Result<(), Failure> {
    println!("microseconds a request, medians of {rounds} (least to greatest); the mirror's speed");
    println!("over that of what it is compared with, round by round\n");
    println!("{:<38} {:>14} {:>14} {:>10}", "mirror : compared with", "mirror", "alone", "ratio");
    for case in cases {
        let [ours, theirs] = rounds_of(case, rounds)?;
        let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(o, t)| t / o).collect();
        let [ours, theirs] = [ours, theirs].map(spread);
        let ratio = spread(ratios);
        let digits = if theirs[1] < 10.0 { 2 } else { 1 };
        let of = |value: f64| format!("{value:.digits$}");
        let (what, [ours1, theirs1]) = (case.what, [ours[1], theirs[1]].map(of));
        println!("{what:<38} {ours1:>14} {theirs1:>14} {:>10.2}", ratio[1]);
        let of = |s: [f64; 3]| format!("{}..{}", of(s[0]), of(s[2]));
        let ratio = format!("{:.2}..{:.2}", ratio[0], ratio[2]);
        println!("{:<38} {:>14} {:>14} {ratio:>10}", "", of(ours), of(theirs));
    }
    Ok(())
}

/// A line for each comparison: its name, and the microseconds a request of each round.
fn as_json(cases: &[Case], rounds: u64) -> Result<(), Failure> {
    for case in cases {
        let [mirror, alone] = rounds_of(case, rounds)?;
        let what = case.what;
        println!("{{\"what\":\"{what}\",\"mirror\":{mirror:?},\"alone\":{alone:?}}}");
    }
    Ok(())
}

/// Least, median, greatest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    [values[0], median(&values).unwrap_or(values[last]), values[last]]
}
