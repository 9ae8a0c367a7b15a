//! An image whose journal is in a file of its own, which could be a device of fast memory.
//!
//! ```sh
//! cargo run --example external_journal
//! ```

// It is for people.
#![allow(clippy::print_stdout)]

use std::io::Write;

use steadfast::{DataMode, Error, Image, Journal};

/// See above.
pub fn main() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let (disk, card) = (folder.path().join("disk.img"), folder.path().join("card.img"));

    // With data=journal a small write that is synced goes to the card alone.
    let image = Image::create(&disk)
        .size(64 << 20)
        .label("letters")
        .journal(Journal::external(&card))
        .journal_size(16 << 20)
        .data(DataMode::Journal);
    let fs = image.mount()?;
    fs.create_dir_all("/2026/november")?;
    let mut file = fs.create("/2026/november/24")?;
    file.write_all(b"Dear reader,\n")?;
    file.sync_all()?;
    drop(file);
    fs.unmount()?;

    // The disk says which journal belongs to it, and does not mount without.
    let missing: Error = Image::open(&disk).mount().expect_err("the journal is elsewhere");
    println!("without its journal: {missing}");

    let fs = Image::open(&disk).journal(Journal::external(&card)).read_only(true).mount()?;
    for entry in fs.read_dir("/2026/november")? {
        let entry = entry?;
        print!("{}: {}", entry.path().display(), fs.read_to_string(entry.path())?);
    }
    let space = fs.statfs()?;
    println!("{} of {} blocks are free", space.blocks_free, space.blocks);
    Ok(fs.unmount()?)
}
