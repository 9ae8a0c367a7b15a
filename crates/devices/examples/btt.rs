//! Sector namespaces in a file, to hold them against those of a kernel:
//! `cargo run -p steadfast-devices --example btt -- COMMAND FILE ...`, or `cargo xtask btt`.
//!
//! * `format FILE SECTOR`: makes one with sectors of so many bytes;
//! * `write FILE OFFSET`: writes what comes on standard input, padded with zeros to whole sectors;
//! * `cut FILE OFFSET`: the same, one sector, without the last step: the map is not changed;
//! * `read FILE OFFSET LEN`: writes so many bytes to standard output;
//! * `discard FILE OFFSET LEN`;
//! * `size FILE`: prints the bytes that it holds;
//! * `speed FILE`: how long requests of a sector take, in the namespace and without it; overwrites
//!   it;
//! * `check FILE`: prints what is found; exit status 1 if something is wrong.

// It is for people.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use steadfast_block::{
    self as block, BlockDevice, BlockError, Completion, DeviceInfo, DirectMemory, Request,
};
use steadfast_devices::filter::btt;
use steadfast_devices::source::{Pmem, PmemOptions};
use steadfast_statistics::median_of_whole;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(good) => ExitCode::from(u8::from(!good)),
        Err(error) => {
            eprintln!("btt: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[&str]) -> Result<bool, Failure> {
    let [command, file, rest @ ..] = args else {
        return Err("a command and a file are needed".into());
    };
    let device: Arc<dyn BlockDevice> = Arc::new(Pmem::open(file, &PmemOptions::default())?);
    match (*command, rest) {
        ("format", [sector]) => {
            let options = btt::Options { sector: sector.parse()?, ..btt::Options::default() };
            println!("{:?}", btt::format(&device, options)?);
        }
        ("write", [offset]) => write(&device, offset)?,
        ("cut", [offset]) => {
            // The data and the two halves of the flog entry; opening stores nothing.
            let ends = Ends { next: Arc::clone(&device), left: AtomicU64::new(3) };
            if write(&(Arc::new(ends) as Arc<dyn BlockDevice>), offset).is_ok() {
                return Err("nothing was cut".into());
            }
        }
        ("read", [offset, len]) => {
            let data = btt::open(&device)?.read(offset.parse()?, len.parse()?)?;
            std::io::stdout().write_all(&data)?;
        }
        ("speed", []) => speed(&device)?,
        ("size", []) => println!("{}", btt::open(&device)?.info().size),
        ("discard", [offset, len]) => {
            btt::open(&device)?.discard(offset.parse()?, len.parse()?)?;
        }
        ("check", []) => {
            let report = btt::check(&*device)?;
            println!("{report:#?}");
            return Ok(report.is_good());
        }
        _ => return Err("unknown command; they are at the top of its source".into()),
    }
    device.flush()?;
    Ok(true)
}

/// Writes what comes on standard input.
fn write(device: &Arc<dyn BlockDevice>, offset: &str) -> Result<(), Failure> {
    let btt = btt::open(device)?;
    let mut data = Vec::new();
    std::io::stdin().read_to_end(&mut data)?;
    data.resize(data.len().next_multiple_of(btt.info().logical_block as usize), 0);
    Ok(btt.write(offset.parse()?, data.into())?)
}

/// Prints medians.
fn speed(device: &Arc<dyn BlockDevice>) -> Result<(), Failure> {
    for sector in [512, 4096] {
        let options = btt::Options { sector, ..btt::Options::default() };
        btt::format(device, options)?;
        let btt = btt::open(device)?;
        let len = u64::from(sector);
        let data = Bytes::from(vec![7; sector as usize]);
        for at in 0..PLACES {
            btt.write(at * len, data.clone().into())?;
        }
        // Far behind the sectors used, and before the map.
        let plain = device.info().size / 2;
        println!(
            "{sector} bytes, ns: write {}, without {}; read {}, without {}",
            median(|at| btt.write(at * len, data.clone().into()))?,
            median(|at| device.write_fua(plain + at * len, data.clone().into()))?,
            median(|at| btt.read(at * len, len).map(drop))?,
            median(|at| device.read(plain + at * len, len).map(drop))?,
        );
    }
    Ok(())
}

/// Sectors that are used by turns.
const PLACES: u64 = 1024;

fn median(mut request: impl FnMut(u64) -> block::Result<()>) -> Result<u64, Failure> {
    let mut nanos = Vec::new();
    for n in 0..100_000 {
        let begun = Instant::now();
        request(n * 7 % PLACES)?;
        nanos.push(begun.elapsed().as_nanos() as u64);
    }
    Ok(median_of_whole(&nanos).unwrap_or(0))
}

/// A memory whose stores fail from one on: what a power cut leaves, if nothing is torn.
struct Ends {
    next: Arc<dyn BlockDevice>,
    left: AtomicU64,
}

impl BlockDevice for Ends {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        self.next.submit(request)
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        Some(self)
    }
}

impl Ends {
    fn memory(&self) -> block::Result<&dyn DirectMemory> {
        let (device, reason) = (self.info().name, "this is the end".into());
        self.next.direct_memory().ok_or(BlockError::Gone { device, reason })
    }
}

impl DirectMemory for Ends {
    fn load(&self, offset: u64, out: &mut [u8]) -> block::Result<()> {
        self.memory()?.load(offset, out)
    }

    fn store(&self, offset: u64, data: &[u8]) -> block::Result<()> {
        let more = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        if more.is_err() {
            return Err(BlockError::Gone { device: self.info().name, reason: "power cut".into() });
        }
        self.memory()?.store(offset, data)
    }

    fn persist(&self, offset: u64, len: u64) -> block::Result<()> {
        self.memory()?.persist(offset, len)
    }

    fn fence(&self) -> block::Result<()> {
        self.memory()?.fence()
    }
}
