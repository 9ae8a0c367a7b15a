//! How long does an fsync take on a hard disk, and how long with the journal on an NVRAM card?
//!
//! The disk and the card are models from data sheets, and time is virtual: the run takes a moment
//! whatever the answer is, and gives the same answer every time.
//!
//! ```sh
//! cargo run --release --example virtual_time
//! ```

// It is for people.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use steadfast::devices::model::hdd::WriteCacheMode;
use steadfast::devices::model::{Hdd, HddParams, Nvram, NvramParams};
use steadfast::runtime::{Sim, now};
use steadfast::{DataMode, Image, Journal};

const CALLS: u32 = 100;

/// See above.
pub fn main() -> Result<(), Box<dyn Error>> {
    let rows = [
        ("journal on the disk", false, DataMode::Ordered),
        ("journal on the card", true, DataMode::Ordered),
        ("journal on the card, data=journal", true, DataMode::Journal),
    ];
    for (name, card, data) in rows {
        let each = Sim::new(1).run(move || fsync_time(card, data))??;
        println!("{name:34} {:8.3} ms an fsync", each.as_secs_f64() * 1e3);
    }
    Ok(())
}

/// The time of a small write with fsync at the end of a log.
fn fsync_time(card: bool, data: DataMode) -> Result<Duration, Box<dyn Error>> {
    let disk = HddParams { write_cache: WriteCacheMode::On, ..HddParams::default() };
    let disk = Arc::new(Hdd::new("disk", &disk)?);
    let journal = match card {
        true => Journal::external(Arc::new(Nvram::new("card", &NvramParams::default())?)),
        false => Journal::Internal,
    };
    let fs = Image::create(disk).zeroed(true).journal(journal).data(data).mount()?;
    let log = fs.create("/log")?;
    fs.sync()?;
    let start = now();
    for n in 0..CALLS {
        log.write_all_at(&[b'x'; 100], u64::from(n) * 100)?;
        log.sync_all()?;
    }
    let each = (now() - start) / CALLS;
    drop(log);
    fs.unmount()?;
    Ok(each)
}
