//! Times operations in this process on a RAM device, on a folder of this machine, or with files in
//! place on an emulated range of memory: nanoseconds an operation, and nanoseconds of processor
//! time (-: less than the host counts).
//!
//! ```sh
//! cargo run --release -p steadfast-selftest --example operations -- \
//!     [FOLDER | --in-place FILE [--fast]]
//! ```
//!
//! FILE should be in /dev/shm; it is made and removed. `--fast`: with fast commits.

#![allow(clippy::print_stdout)]

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::{Pmem, PmemOptions, Ram};
use steadfast_ext4::{Dax, Ext4, MountOptions};
use steadfast_ext4_format::ondisk::Compat;
use steadfast_ext4_mkfs::{Options, make};
use steadfast_selftest::operations::{Amounts, run};
use steadfast_statistics::median_of_whole;
use steadfast_vfs::{FileSystem, HostFs};

const RUNS: usize = 3;

fn main() {
    let fast = std::env::args().any(|word| word == "--fast");
    let fs: Arc<dyn FileSystem> = match std::env::args().nth(1) {
        Some(word) if word == "--in-place" => {
            in_place(&std::env::args().nth(2).expect("a file"), fast)
        }
        Some(folder) => Arc::new(HostFs::open(std::path::Path::new(&folder)).expect("a folder")),
        None => {
            let ram = Ram::new("ram", 1 << 30).persistent();
            let device: Arc<dyn BlockDevice> = Arc::new(ram);
            make(&device, &Options::random(1_700_000_000)).expect("made");
            Ext4::mount(device, MountOptions::default()).expect("mounted")
        }
    };
    let amounts = Amounts { files: 20_000, durable_writes: 2_000 };
    let runs: Vec<_> = (0..RUNS)
        .map(|i| run(&*fs, format!("run{i}").as_bytes(), amounts).expect("no error"))
        .collect();
    // Operation, its time, and the processor's share of it: medians over the runs.
    for (i, row) in runs[0].iter().enumerate() {
        let times: Vec<u64> = runs.iter().map(|r| r[i].nanos_each()).collect();
        let time = median_of_whole(&times).unwrap_or(0);
        let cpu: Option<Vec<u64>> = runs.iter().map(|r| r[i].cpu_nanos_each()).collect();
        let cpu = cpu.as_deref().and_then(median_of_whole);
        let cpu = cpu.map_or("-".to_owned(), |cpu| cpu.to_string());
        println!("{:<26} {time:>9} {cpu:>9} ns", row.name);
    }
}

/// A file system on an emulated range of memory, whose files are used in place.
fn in_place(path: &str, fast: bool) -> Arc<dyn FileSystem> {
    Pmem::create_emulated(path, 1 << 30).expect("made");
    let pmem = Pmem::open(path, &PmemOptions::default()).expect("mapped");
    // The mapping keeps it; nothing stays however this ends.
    std::fs::remove_file(path).expect("removed");
    let device: Arc<dyn BlockDevice> = Arc::new(pmem);
    let mut made = Options::random(1_700_000_000);
    let mut options = MountOptions { dax: Dax::Always, ..MountOptions::default() };
    if fast {
        made.features.compat |= Compat::FAST_COMMIT;
        options.journal.fast_commits = true;
    }
    options.journal.accept_volatile = true;
    make(&device, &made).expect("formatted");
    Ext4::mount(device, options).expect("mounted")
}
