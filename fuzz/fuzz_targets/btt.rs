//! A sector namespace whose tables are anything. Each six bytes of the input change four bytes of
//! the info block, the flog or the map; the info block's checksum is made right again, which the
//! fuzzer could not guess.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::{Arc, OnceLock};

use steadfast_block::BlockDevice;
use steadfast_devices::filter::btt::{self, Options};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_fuzz::fletcher64;

const BYTES: u64 = (16 << 20) + 4096;
const INFO_AT: u64 = 4096;
const INFO_BYTES: usize = 4096;
const SUM_AT: usize = INFO_BYTES - 8;
/// Where the info block says that map and flog are.
const MAP_FIELD: usize = 96;
const FLOG_FIELD: usize = 104;
/// Bytes of these tables that are changed.
const TABLE: u64 = 128;

fn good() -> &'static Store {
    static GOOD: OnceLock<Store> = OnceLock::new();
    GOOD.get_or_init(|| {
        let ram = Ram::new("pmem0", BYTES);
        let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
        btt::format(&device, Options { nfree: 2, ..Options::default() }).unwrap();
        btt::open(&device).unwrap().write(0, vec![7; 32 << 10].into()).unwrap();
        ram.store()
    })
}

pub fn run(input: &[u8]) {
    let mut store = good().clone();
    let mut info = store.read(INFO_AT, INFO_BYTES as u64).to_vec();
    let field = |at: usize| u64::from_le_bytes(info[at..at + 8].try_into().unwrap());
    let (map, flog) = (INFO_AT + field(MAP_FIELD), INFO_AT + field(FLOG_FIELD));
    for change in input.chunks_exact(6).take(32) {
        let (place, value) = (u64::from(change[1]) * 4, &change[2..]);
        match change[0] % 3 {
            0 => info[place as usize..][..4].copy_from_slice(value),
            1 => store.write_slice(flog + place % TABLE, value),
            _ => store.write_slice(map + place % TABLE, value),
        }
    }
    info[SUM_AT..].fill(0);
    let sum = fletcher64(&info);
    info[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    store.write_slice(INFO_AT, &info);
    let device: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("pmem0", store));
    drop(btt::probe(&*device));
    drop(btt::check(&*device));
    if let Ok(namespace) = btt::open(&device) {
        let sector = u64::from(namespace.info().logical_block);
        for at in [0, namespace.info().size - sector] {
            drop(namespace.read(at, sector));
            drop(namespace.write(at, vec![1; sector as usize].into()));
            drop(namespace.discard(at, sector));
        }
    }
    drop(btt::restore(&device, None));
}

steadfast_fuzz::target!(run);
