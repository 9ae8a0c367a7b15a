//! A counter in a file, whose values are handed out once: when [`next`] returns one, it is durable
//! that it is taken.

use std::fs::{self, File};
use std::io::{Result, Write};
use std::path::Path;

/// Takes the next number.
pub fn next(path: &Path) -> Result<u64> {
    let number = last(path) + 1;
    store(path, number)?;
    Ok(number)
}

/// The last number that was taken; 0: none.
fn last(path: &Path) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn store(path: &Path, number: u64) -> Result<()> {
    let mut file = File::create(path)?;
    writeln!(file, "{number}")?;
    file.sync_all()?;
    sync_folder_of(path)
}

/// Makes the name of a file durable.
fn sync_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
