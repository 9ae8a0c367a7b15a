mod damage;
mod failing;
mod hostile;

use std::sync::Arc;

use steadfast_block::{BlockDevice, conformance, pattern};
use steadfast_runtime::Sim;

use super::error::{NEEDS_MEMORY, none};
use super::layout::ARENA_BYTES_MIN;
use super::*;
use crate::filter::NamespaceError;
use crate::source::Ram;

type Device = Arc<dyn BlockDevice>;

const BYTES: u64 = 17 << 20;

fn memory() -> Device {
    Arc::new(Ram::new("pmem0", BYTES).persistent())
}

fn patch(memory: &Device, at: u64, bytes: &[u8]) {
    memory.direct_memory().unwrap().store(at, bytes).unwrap();
}

fn load<const N: usize>(memory: &Device, at: u64) -> [u8; N] {
    let mut bytes = [0; N];
    memory.direct_memory().unwrap().load(at, &mut bytes).unwrap();
    bytes
}

/// The first arena, as it is found.
fn arena(memory: &Device) -> find::LocatedArena {
    find::find(&**memory, None).unwrap().unwrap().remove(0)
}

fn made(options: Options) -> (Device, Btt) {
    let memory = memory();
    format(&memory, options).unwrap();
    let btt = open(&memory).unwrap();
    (memory, btt)
}

#[test]
fn conforms() {
    for sector in [512, 4096] {
        for version in [Version::V1_1, Version::V2_0] {
            let make = move || -> Device {
                Arc::new(made(Options { sector, version, ..Options::default() }).1)
            };
            conformance::run(&make);
            Sim::new(1).run(move || conformance::run(&make)).unwrap();
        }
    }
}

#[test]
fn what_is_written_is_there_after_opening_again() {
    for (sector, nfree) in [(512, 1), (512, 256), (4096, 3)] {
        let (memory, btt) = made(Options { sector, nfree, ..Options::default() });
        let bytes = 40 * u64::from(sector);
        for tag in 1..5 {
            btt.write(0, pattern::bytes(tag, 0, bytes as usize).into()).unwrap();
        }
        drop(btt);
        let report = check(&*memory).unwrap();
        assert!(report.is_good(), "{report:?}");
        assert_eq!((report.written, report.interrupted), (40, 0));
        let btt = open(&memory).unwrap();
        assert_eq!(btt.read(0, bytes).unwrap(), pattern::bytes(4, 0, bytes as usize));
        assert_eq!(btt.read(bytes, 4096).unwrap(), vec![0; 4096]);
    }
}

#[test]
fn it_says_what_it_is() {
    let (_, btt) = made(Options { sector: 512, ..Options::default() });
    let info = btt.info();
    assert_eq!((info.logical_block, info.atomic_write, info.volatile_cache), (512, 512, false));
    assert_eq!(info.size, btt.namespace().bytes());
    assert!(btt.direct_memory().is_none());
    // Linux makes so many sectors of so much memory.
    let memory: Device = Arc::new(Ram::new("pmem0", 128 << 20));
    let options = Options { uuid: Some(uuid::Uuid::from_u128(7)), ..Options::default() };
    let info = format(&memory, options).unwrap();
    assert_eq!((info.sectors, info.uuid), (32_472, uuid::Uuid::from_u128(7)));
    assert_eq!(probe(&*memory), Ok(Some(info)));
}

#[test]
fn what_cannot_be_made_is_refused() {
    let memory = memory();
    let message = |options| format(&memory, options).unwrap_err().to_string();
    let wanted = "pmem0: sectors of 520 bytes cannot be made; 512 and 4096 can";
    assert_eq!(message(Options { sector: 520, ..Options::default() }), wanted);
    let wanted = "pmem0: 0 free blocks cannot be made; 1 to 65536 can";
    assert_eq!(message(Options { nfree: 0, ..Options::default() }), wanted);
    let wanted = "pmem0: 65536 free blocks leave no room for sectors";
    assert_eq!(message(Options { nfree: 65_536, ..Options::default() }), wanted);
    let small: Device = Arc::new(Ram::new("small", 16 << 20));
    let message = format(&small, Options::default()).unwrap_err().to_string();
    let wanted = "small: has 16777216 bytes; a sector namespace of version 1.1 needs 16781312";
    assert_eq!(message, wanted);
    format(&small, Options { version: Version::V2_0, ..Options::default() }).unwrap();
    let disk = crate::filter::Window::new("disk", Arc::clone(&memory), 0, 1 << 20).unwrap();
    let disk: Device = Arc::new(disk);
    assert_eq!(
        open(&disk).err(),
        Some(NamespaceError::NotMemory { device: "disk".into(), by: NEEDS_MEMORY })
    );
    assert_eq!(open(&memory).err(), Some(none("pmem0".into())));
}

#[test]
fn several_arenas_are_one_device() {
    let memory: Device = Arc::new(Ram::new("pmem0", 2 * ARENA_BYTES_MIN + 4096));
    let options = Options { nfree: 2, ..Options::default() };
    let info = format::format_in_arenas(&memory, options, ARENA_BYTES_MIN).unwrap();
    let [first, second] = info.arenas[..] else { panic!("{info:?}") };
    assert_eq!(second.at, 4096 + ARENA_BYTES_MIN);
    let btt = open(&memory).unwrap();
    let border = u64::from(first.sectors) * 4096;
    let data = pattern::bytes(3, 0, 6 * 4096);
    btt.write(border - 3 * 4096, data.clone().into()).unwrap();
    btt.write(info.bytes() - 4096, data.slice(..4096).into()).unwrap();
    let btt = open(&memory).unwrap();
    assert_eq!(btt.read(border - 3 * 4096, 6 * 4096).unwrap(), data);
    assert_eq!(btt.read(info.bytes() - 4096, 4096).unwrap(), data[..4096]);
    let report = check(&*memory).unwrap();
    assert_eq!((report.is_good(), report.written), (true, 7));
    // The last one has its copy where it is looked for.
    patch(&memory, second.at + 100, &[9]);
    assert!(open(&memory).unwrap().namespace().arenas[1].from_copy);
    assert_eq!(restore(&memory, None), Ok(1));
    assert_eq!(probe(&*memory), Ok(Some(info)));
}

#[test]
fn a_device_of_more_than_512_gib_has_two_arenas() {
    let size = (513 << 30) + (1 << 20) + 777 * 512;
    let memory: Device = Arc::new(Ram::new("pmem0", size));
    let info = format(&memory, Options::default()).unwrap();
    let at: Vec<_> = info.arenas.iter().map(|arena| (arena.at, arena.bytes)).collect();
    let whole = 1 << 39;
    assert_eq!(at, [(4096, whole), (4096 + whole, (size - 4096 - whole) / 4096 * 4096)]);
    let btt = open(&memory).unwrap();
    let border = u64::from(info.arenas[0].sectors) * 4096;
    btt.write(border - 4096, pattern::bytes(3, 0, 8192).into()).unwrap();
    assert_eq!(btt.read(border - 4096, 8192).unwrap(), pattern::bytes(3, 0, 8192));
    // Both copies are where they are looked for.
    for arena in &info.arenas {
        patch(&memory, arena.at + 100, &[9]);
    }
    let found = open(&memory).unwrap();
    assert!(found.namespace().arenas.iter().all(|arena| arena.from_copy));
}

#[test]
fn what_was_never_written_reads_as_zeros_whatever_is_there() {
    let memory = memory();
    memory.write(0, pattern::bytes(8, 0, BYTES as usize).into()).unwrap();
    format(&memory, Options::default()).unwrap();
    let btt = open(&memory).unwrap();
    assert_eq!(btt.read(0, 1 << 20).unwrap(), vec![0; 1 << 20]);
}

/// Before Linux 4.15 a lane's entries were in the places 0 and 2 of its group.
#[test]
fn a_flog_of_the_older_places_is_read_and_kept() {
    let (memory, btt) = made(Options { nfree: 2, ..Options::default() });
    btt.write(0, pattern::bytes(1, 0, 3 * 4096).into()).unwrap();
    drop(btt);
    let found = arena(&memory);
    for lane in 0..2 {
        let group = found.at + found.info.layout.group_at(lane);
        let second: [u8; 16] = load(&memory, group + 16);
        patch(&memory, group + 16, &[0; 16]);
        patch(&memory, group + 32, &second);
    }
    let btt = open(&memory).unwrap();
    for tag in 2..5 {
        btt.write(0, pattern::bytes(tag, 0, 3 * 4096).into()).unwrap();
    }
    drop(btt);
    assert_eq!(open(&memory).unwrap().read(0, 3 * 4096).unwrap(), pattern::bytes(4, 0, 3 * 4096));
    assert_eq!(load::<16>(&memory, found.at + found.info.layout.group_at(0) + 16), [0; 16]);
    assert!(check(&*memory).unwrap().is_good());
}

#[test]
fn real_threads_write_and_read_whole_sectors() {
    let (memory, btt) = made(Options { sector: 512, nfree: 2, ..Options::default() });
    let sectors = 8;
    std::thread::scope(|scope| {
        for thread in 1..4 {
            let btt = &btt;
            scope.spawn(move || {
                for n in 0..400u64 {
                    let at = (n * thread) % sectors * 512;
                    btt.write(at, vec![(n % 200) as u8 + thread as u8; 512].into()).unwrap();
                    let got = btt.read((n + thread) % sectors * 512, 512).unwrap();
                    assert!(got.iter().all(|byte| *byte == got[0]));
                }
            });
        }
    });
    drop(btt);
    let report = check(&*memory).unwrap();
    assert!(report.is_good(), "{report:?}");
    assert_eq!((report.written, report.interrupted), (sectors, 0));
}
