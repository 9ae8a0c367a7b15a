//! The same bytes from the same input: a command that makes or changes an image runs in a
//! simulation, whose date stands still and whose random numbers have a seed.
//!
//! A file system that is changed writes down when, and numbers that tell apart what has the same
//! place one after the other; and what is written when decides where it lies. In a simulation all
//! of that follows from the date (`SOURCE_DATE_EPOCH`, as reproducible-builds.org defines it) and
//! the image.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use steadfast_runtime::{Sim, random_u64};
use steadfast_setup::path::{members_of, memory};

use crate::CommandEnd;
use crate::cli::Command;
use crate::source_date::date;

/// The date does not move while a command runs.
const STANDS_STILL: Duration = Duration::from_secs(200 * 365 * 86_400);

/// The seed of a command whose result is to follow from its input alone; `None` for others.
///
/// # Errors
/// The date is none; what cannot be made so.
pub fn seed(command: &Command) -> Result<Option<u64>> {
    let is_dated = date()?.is_some();
    let image = match command {
        Command::Mkfs(mkfs) if is_dated || !mkfs.sources.is_empty() => {
            if members_of(&mkfs.image).is_some() && !mkfs.sources.is_empty() {
                usage!("-d fills an image or a device; put fills a volume once it is made");
            }
            if members_of(&mkfs.image).is_some() {
                return Ok(None);
            }
            // What is there before does not count.
            let named = mkfs.uuid.as_deref().map(|uuid| mixed(uuid.as_bytes()));
            return Ok(Some(named.unwrap_or_else(random_u64)));
        }
        Command::Put(put) if is_dated => &put.image.image,
        Command::Rm { image, .. } | Command::Mkdir { image, .. } if is_dated => &image.image,
        _ => return Ok(None),
    };
    if members_of(image).is_some() || memory::is_memory(image).unwrap_or(true) {
        return Ok(None);
    }
    Ok(Some(of_superblock(image)))
}

/// A seed that another command on the same image has not had: its superblock counts mounts.
fn of_superblock(image: &Path) -> u64 {
    use std::os::unix::fs::FileExt;
    let mut superblock = [0; 1024];
    let read = std::fs::File::open(image).and_then(|file| file.read_at(&mut superblock, 1024));
    // What cannot be read is said by who opens it.
    mixed(superblock.get(..read.unwrap_or(0)).unwrap_or_default())
}

/// FNV-1a.
fn mixed(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Does the work in a simulation, and writes what it has printed.
pub fn run(
    seed: u64,
    work: impl FnOnce(&mut dyn Write) -> Result<CommandEnd> + 'static,
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let simulated = Sim::new(seed).date_step(STANDS_STILL).run(move || {
        let mut printed = Vec::new();
        (work(&mut printed), printed)
    });
    let (done, printed) = simulated.map_err(|e| anyhow!("{e}"))?;
    let written = out.write_all(&printed);
    let done = done?;
    written.context("the standard output")?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_a_date_that_stands_still_and_numbers_by_its_seed() {
        let drawn = |seed| {
            let mut out = Vec::new();
            let work = |out: &mut dyn Write| {
                steadfast_runtime::sleep(Duration::from_secs(1_000_000));
                let date = steadfast_runtime::unix_ns(7_000_000_000);
                writeln!(out, "{date} {}", random_u64())?;
                Ok(CommandEnd::Good)
            };
            assert_eq!(run(seed, work, &mut out).unwrap(), CommandEnd::Good);
            String::from_utf8(out).unwrap()
        };
        assert!(drawn(1).starts_with("7000000000 "));
        assert!(drawn(1) == drawn(1) && drawn(1) != drawn(2));
    }
}
