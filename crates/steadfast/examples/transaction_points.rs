//! Two files that must agree: a power cut between two transaction points leaves both as they were
//! at the last one, contents included.
//!
//! ```sh
//! cargo run --example transaction_points
//! ```

// It is for people.
#![allow(clippy::print_stdout)]

use std::io;
use std::sync::Arc;

use steadfast::devices::source::Ram;
use steadfast::{DataMode, FileSystem, Image, TransactPolicy};

/// See above.
pub fn main() -> io::Result<()> {
    let disk = Ram::new("disk", 32 << 20);
    let image = Image::create(Arc::new(disk.clone())).zeroed(true).data(DataMode::Transact);
    let fs = image.transaction_points(TransactPolicy::MANUAL).mount()?;
    transfer(&fs, 100, 0)?;
    fs.transaction_point()?;

    // Half of a transfer, even synced: without a point it is not promised.
    fs.write("/giver", "60")?;
    fs.sync()?;
    println!("before the cut  {}", balance(&fs)?);

    // What the disk holds at this moment is what a power cut leaves. To copy it takes no time.
    let left = Ram::from_store("left", disk.store());
    let after = Image::open(Arc::new(left)).mount()?;
    println!("after the cut   {}", balance(&after)?);
    assert_eq!(balance(&after)?, "giver 100, taker 0");
    after.unmount()?;

    // The whole of it as one: done, or taken back when something fails on the way.
    fs.rollback()?;
    fs.transaction(|fs| transfer(fs, 60, 40))?;
    println!("done            {}", balance(&fs)?);
    assert_eq!(balance(&fs)?, "giver 60, taker 40");
    Ok(fs.unmount()?)
}

fn transfer(fs: &FileSystem, giver: u32, taker: u32) -> steadfast::Result<()> {
    fs.write("/giver", giver.to_string())?;
    fs.write("/taker", taker.to_string())
}

fn balance(fs: &FileSystem) -> steadfast::Result<String> {
    let (giver, taker) = (fs.read_to_string("/giver")?, fs.read_to_string("/taker")?);
    Ok(format!("giver {giver}, taker {taker}"))
}
