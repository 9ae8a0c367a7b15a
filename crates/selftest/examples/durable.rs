//! Times small durable calls on one file system; prints the rows as a line of JSON.
//!
//! ```sh
//! cargo run --release -p steadfast-selftest --example durable -- SIDE [OPTION...]
//! ```
//!
//! SIDE is `host FOLDER`: the kernel's file system in that folder; or ours, in this process:
//! `memory FILE`, an emulated range of memory with files in place (dax=always); `ram`, a RAM device
//! with a page cache; `disk FILE`, a file past the page cache, which becomes a file system. Files
//! of `memory` and `--journal` are made, 1 GiB and `--journal-mib` large, and removed.
//!
//! `stores FILE` prints how long it takes to store 4 KiB to such a range and to wait for it, and
//! nothing else: what a durable write in place costs at least.
//!
//! `--fast`: with fast commits. `--journal FILE`: the journal on an emulated range of memory, FILE.
//! `--data MODE`: data=MODE. `--daemon PID`: the process that serves FOLDER, whose processor time
//! counts too. `--tasks N`: tasks at a time. `--calls N`: timed calls of each
//! kind. `--before N`: overwrites before them. `--only overwrite`: that kind alone.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_devices::source::{Direct, FileDevice, FileOptions, Pmem, PmemOptions, Ram};
use steadfast_ext4::{DataMode, Dax, Ext4, MountOptions};
use steadfast_ext4_format::ondisk::Compat;
use steadfast_ext4_mkfs::{
    JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_selftest::durable::{Amounts, Call, DurableClient, OnFileSystem, OnHost, run};

/// The date of what is made.
const EPOCH: u64 = 1_700_000_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What the words say.
#[derive(Default)]
struct Words {
    side: Vec<String>,
    fast: bool,
    journal: Option<String>,
    journal_mib: u64,
    data: DataMode,
    daemon: Option<u32>,
    tasks: usize,
    amounts: Option<Amounts>,
    calls: Vec<Call>,
}

fn main() -> Outcome<()> {
    let words = words()?;
    let side: Vec<&str> = words.side.iter().map(String::as_str).collect();
    if let ["stores", path] = side[..] {
        return stores(path);
    }
    let (mut clients, fs) = match side[..] {
        ["host", folder] => {
            let of = |task| {
                Ok(Box::new(OnHost::new(Path::new(folder), task)?) as Box<dyn DurableClient>)
            };
            ((0..words.tasks).map(of).collect::<Outcome<Vec<_>>>()?, None)
        }
        _ => {
            let fs = ours(&side, &words)?;
            let of = |task| Box::new(OnFileSystem::new(fs.clone(), task)) as Box<dyn DurableClient>;
            ((0..words.tasks).map(of).collect(), Some(fs.clone()))
        }
    };
    let amounts = words.amounts.ok_or("no amounts")?;
    let rows = run(&mut clients, &words.calls, amounts, words.daemon)?;
    drop(clients);
    if let Some(fs) = fs {
        fs.unmount()?;
    }
    println!("{}", serde_json::to_string(&rows)?);
    Ok(())
}

fn words() -> Outcome<Words> {
    let mut words =
        Words { tasks: 1, journal_mib: 128, calls: Call::ALL.to_vec(), ..Words::default() };
    let mut amounts = Amounts { calls: 8000, before: 0 };
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--fast" => words.fast = true,
            "--journal" => words.journal = Some(value()?),
            "--journal-mib" => words.journal_mib = value()?.parse()?,
            "--data" => {
                let name = value()?;
                words.data = match name.as_str() {
                    "ordered" => DataMode::Ordered,
                    "writeback" => DataMode::Writeback,
                    "journal" => DataMode::Journal,
                    _ => return Err(format!("--data {name}: ordered, writeback, journal").into()),
                };
            }
            "--daemon" => words.daemon = Some(value()?.parse()?),
            "--tasks" => words.tasks = value()?.parse()?,
            "--calls" => amounts.calls = value()?.parse()?,
            "--before" => amounts.before = value()?.parse()?,
            "--only" => words.calls = serde_json::from_str(&format!("[{:?}]", value()?))?,
            _ => words.side.push(word),
        }
    }
    words.amounts = Some(amounts);
    Ok(words)
}

/// An emulated range of memory, all of which has been written once: that the host finds pages for
/// it is not to be timed. Its file is gone at once; the mapping keeps it.
fn memory(path: &str, bytes: u64) -> Outcome<Arc<dyn BlockDevice>> {
    Pmem::create_emulated(path, bytes)?;
    let opened = Pmem::open(path, &PmemOptions::default());
    std::fs::remove_file(path)?;
    let device: Arc<dyn BlockDevice> = Arc::new(opened?);
    let zeros = Bytes::from(vec![0; 1 << 20]);
    for at in (0..device.info().size).step_by(zeros.len()) {
        let rest = (device.info().size - at).min(zeros.len() as u64) as usize;
        device.write(at, zeros.slice(..rest).into())?;
    }
    Ok(device)
}

/// Stores blocks all over 8 MiB, as overwrites do.
fn stores(path: &str) -> Outcome<()> {
    let device = memory(path, 8 << 20)?;
    let memory = device.direct_memory().ok_or("no memory")?;
    let (block, count) = (vec![0x5a; 4096], 200_000u64);
    let begun = Instant::now();
    for i in 0..count {
        memory.store_through(i * 797 % 2048 * 4096, &block)?;
        memory.fence()?;
    }
    let each = begun.elapsed().as_secs_f64() / count as f64 * 1e6;
    println!("Storing 4 KiB and waiting for it, and nothing else: {each:.2} us.");
    Ok(())
}

/// Our file system, made anew.
fn ours(side: &[&str], words: &Words) -> Outcome<Arc<Ext4>> {
    let mut made = Options::random(EPOCH);
    let mut options = MountOptions { data: words.data, ..MountOptions::default() };
    let device: Arc<dyn BlockDevice> = match side {
        ["memory", path] => {
            options.dax = Dax::Always;
            memory(path, 1 << 30)?
        }
        ["ram"] => Arc::new(Ram::new("ram", 1 << 30).persistent()),
        ["disk", path] => {
            let how = FileOptions { direct: Direct::Required, ..FileOptions::default() };
            Arc::new(FileDevice::open(path, &how)?)
        }
        _ => return Err("a side: host FOLDER, memory FILE, ram or disk FILE".into()),
    };
    options.journal.accept_volatile = true;
    if words.fast {
        made.features.compat |= Compat::FAST_COMMIT;
        options.journal.fast_commits = true;
    }
    if let Some(path) = &words.journal {
        let journal = memory(path, words.journal_mib << 20)?;
        let how = JournalDeviceOptions {
            accept_volatile: true,
            zeros: true,
            ..JournalDeviceOptions::random(EPOCH)
        };
        make_journal_device(&journal, &how)?;
        let device = Arc::clone(&journal);
        made.journal = JournalChoice::External { device, accept_volatile: true };
        options.journal_device = Some(journal);
    }
    make(&device, &made)?;
    Ok(Ext4::mount(device, options)?)
}
