//! A test of one's own program under power cuts: a small store of keys and values, which appends to
//! a log and believes of it what has a whole line.
//!
//! ```sh
//! cargo run --release --example power_cut
//! ```

// It is for people.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;

use steadfast::crash::{Failure, NextBoot, PowerCut, ProgramFs, Report};
use steadfast::{DataMode, File, FileSystem, OpenOptions};

/// The program that is tested. It knows nothing of the test.
struct Store {
    log: File,
    syncs: bool,
}

impl Store {
    fn open(fs: &FileSystem, syncs: bool) -> std::io::Result<Store> {
        let log = OpenOptions::new().append(true).create(true).open(fs, "/log")?;
        if syncs {
            // The name of the log is to be durable too.
            fs.open("/")?.sync_all()?;
        }
        Ok(Store { log, syncs })
    }

    fn set(&mut self, key: &str, value: u32) -> std::io::Result<()> {
        self.log.write_all(format!("{key}={value}\n").as_bytes())?;
        if self.syncs {
            self.log.sync_data()?;
        }
        Ok(())
    }
}

/// What the next start of the program makes of its log.
fn recovered(fs: &FileSystem) -> steadfast::Result<BTreeMap<String, String>> {
    if !fs.exists("/log")? {
        return Ok(BTreeMap::new());
    }
    let log = String::from_utf8_lossy(&fs.read("/log")?).into_owned();
    let whole = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    Ok(whole.filter_map(|line| line.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect())
}

fn test(data: DataMode, syncs: bool) -> Result<Report, Failure> {
    let program = move |fs: &ProgramFs| {
        let mut store = Store::open(fs, syncs)?;
        for n in 0..20 {
            store.set("counter", n)?;
            fs.acknowledge(n.to_string());
        }
        std::io::Result::Ok(())
    };
    // At least the last value that was acknowledged.
    let judge = |left: &NextBoot| -> Result<(), Box<dyn Error>> {
        let Some(last) = left.acknowledgements().last() else { return Ok(()) };
        let found = recovered(left)?.remove("counter");
        let found: u32 = found.ok_or("the counter is gone")?.parse()?;
        match found >= last.parse()? {
            true => Ok(()),
            false => Err(format!("the counter is {found}, and {last} was acknowledged").into()),
        }
    };
    PowerCut::new().data(data).cuts(50).states(8).run(program).judge(judge)
}

/// See above.
pub fn main() -> Result<(), Box<dyn Error>> {
    for data in [DataMode::Ordered, DataMode::Journal] {
        let Report { cuts, states, .. } = test(data, true)?;
        println!("data={}: nothing found at {cuts} cuts, {states} states", data.name());
    }
    match test(DataMode::Ordered, false) {
        Ok(_) => Err("a store that does not sync cannot pass".into()),
        Err(failure) => {
            println!("\nwithout fsync: {failure}");
            Ok(())
        }
    }
}
