use steadfast_block::{conformance, pattern};
use steadfast_runtime::Sim;

use super::*;
use crate::filter::ReadOnly;
use crate::source::Ram;

const SIZE: u64 = (8 << 20) - (128 << 10);

fn made(options: Options) -> (Ram, Arc<dyn BlockDevice>, Fsdax) {
    let ram = Ram::new("memory", SIZE);
    let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    let info = format(&device, options).unwrap();
    let opened = open(&device, options.behind).unwrap();
    assert_eq!(opened.namespace(), info);
    (ram, device, opened)
}

fn memory_of(ram: &Ram) -> &dyn DirectMemory {
    ram.direct_memory().unwrap()
}

#[test]
fn conforms() {
    let make = || -> Arc<dyn BlockDevice> { Arc::new(made(Options::default()).2) };
    conformance::run(&make);
    Sim::new(1).run(move || conformance::run(&make)).unwrap();
}

#[test]
fn both_ways_reach_the_data_and_nothing_else() {
    for map in [Map::Memory, Map::Device] {
        let (ram, _, fsdax) = made(Options { map, align: 4096, ..Options::default() });
        let before = ram.read(0, SIZE).unwrap();
        let info = fsdax.namespace();
        assert_eq!(fsdax.info().size, info.bytes);
        let memory = fsdax.direct_memory().unwrap();
        let ones = pattern::bytes(1, 0, 4096);
        memory.store_through(0, &ones).unwrap();
        memory.store(info.bytes - 4096, &ones).unwrap();
        memory.persist(info.bytes - 4096, 4096).unwrap();
        memory.fence().unwrap();
        fsdax.write(8192, ones.clone().into()).unwrap();
        fsdax.flush().unwrap();
        let mut loaded = vec![0; 4096];
        memory.load(8192, &mut loaded).unwrap();
        assert_eq!(loaded, ones, "a request and a load see the same");
        assert_eq!(fsdax.read(0, 4096).unwrap(), ones);
        let mut expected = before.to_vec();
        for at in [0, 8192, info.bytes - 4096] {
            expected[(info.start + at) as usize..][..4096].copy_from_slice(&ones);
        }
        assert!(ram.read(0, SIZE).unwrap() == expected);
        for (offset, len) in [(info.bytes - 4, 8), (info.bytes, 1), (u64::MAX, 2)] {
            let outside = |found| matches!(found, Err(BlockError::OutOfRange { .. }));
            assert!(outside(memory.store(offset, &vec![0; len as usize])));
            assert!(outside(memory.store_through(offset, &vec![0; len as usize])));
            assert!(outside(memory.load(offset, &mut vec![0; len as usize])));
            assert!(outside(memory.persist(offset, len)));
        }
    }
}

#[test]
fn a_label_behind_it_is_part_of_the_range_and_no_data() {
    let behind = 128 << 10;
    let (ram, _, fsdax) = made(Options { behind, align: 4096, ..Options::default() });
    let ours = fsdax.namespace();
    // Whoever sees all of it, as a kernel that gets the file as memory, finds the same data.
    let all: Arc<dyn BlockDevice> = Arc::new(Ram::new("all", SIZE + behind));
    all.write(0, ram.read(0, SIZE).unwrap().into()).unwrap();
    assert_eq!(probe(&*all), Ok(Some(ours)));
    assert!((ours.start + ours.bytes).is_multiple_of(2 << 20));
}

#[test]
fn refusals_change_nothing() {
    let ram: Arc<dyn BlockDevice> = Arc::new(Ram::new("memory", SIZE));
    let refused = |device: &Arc<dyn BlockDevice>, options| {
        let refused = format(device, options).unwrap_err();
        assert!(matches!(refused, NamespaceError::Refused { .. }), "{refused}");
    };
    refused(&ram, Options { align: 8192, ..Options::default() });
    refused(&ram, Options { align: 1 << 30, ..Options::default() });
    let small: Arc<dyn BlockDevice> = Arc::new(Ram::new("small", 2 << 20));
    refused(&small, Options::default());
    assert_eq!(probe(&*ram), Ok(None));
    let none = open(&ram, 0).err();
    assert_eq!(
        none,
        Some(NamespaceError::None { device: "memory".into(), kind: "fsdax namespace" })
    );
    let blocks: Arc<dyn BlockDevice> = Arc::new(ReadOnly::new(ram));
    assert!(matches!(
        format(&blocks, Options::default()),
        Err(NamespaceError::NotMemory { .. } | NamespaceError::Refused { .. })
    ));
}

#[test]
fn a_damaged_info_block_is_reported() {
    let (ram, device, _) = made(Options::default());
    memory_of(&ram).store(4096 + 100, &[1]).unwrap();
    let message = probe(&*device).unwrap_err();
    assert!(message.to_string().contains("checksum is wrong"), "{message}");
    // The signature is gone too: there is none.
    memory_of(&ram).store(4096, &[0; 16]).unwrap();
    assert_eq!(probe(&*device), Ok(None));
    let tiny: Arc<dyn BlockDevice> = Arc::new(Ram::new("tiny", 4096));
    assert_eq!(probe(&*tiny), Ok(None));
}
