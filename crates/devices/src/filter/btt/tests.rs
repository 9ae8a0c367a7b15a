use std::sync::Arc;

use steadfast_block::{BlockDevice, conformance, pattern};
use steadfast_runtime::Sim;

use super::*;
use crate::source::Ram;

type Device = Arc<dyn BlockDevice>;

const BYTES: u64 = 17 << 20;

fn memory() -> Device {
    Arc::new(Ram::new("pmem0", BYTES).persistent())
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
