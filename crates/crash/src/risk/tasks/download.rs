//! Downloads: pieces of a file come in any order; a file that is whole gets its name and replaces
//! what was downloaded before. When half of one is there, the oldest goes. They are images of
//! disks, so one piece is of a journal.

use steadfast_vfs::Result;

use super::super::task::{Open, Task, TaskClient};
use crate::account::Action;

/// Bytes of a piece, and how many a file has.
const PIECE: u64 = 16 << 10;
const PIECES: u64 = 64;
/// The piece that is of a journal.
const OF_JOURNAL: u64 = 7;
/// Of a hundred, so many are allocated ahead (the others are sparse) and synced.
const ALLOCATED: u64 = 50;
const WITH_CARE: u64 = 50;
/// Every so many pieces these are synced.
const SYNCED: u64 = 16;
/// Where a file is from, as some programs note it: all of them are from one place.
const ORIGIN: [(&str, &str); 2] = [
    (
        "user.xdg.origin.url",
        "https://downloads.example.org/pub/images/amd64/daily/current/standard-live.iso",
    ),
    (
        "user.xdg.referrer.url",
        "https://www.example.org/en/releases/daily/where-to-get-it?arch=amd64&kind=live",
    ),
];

/// See the module's text.
#[derive(Default)]
pub struct Download {
    begun: u64,
    current: Option<Current>,
}

struct Current {
    file: Open,
    with_care: bool,
    missing: Vec<u64>,
}

impl Download {
    fn begin(&mut self, client: &mut TaskClient) -> Result<Current> {
        self.begun += 1;
        let file = client.create(&format!("download/{}.part", self.begun))?;
        for (name, value) in ORIGIN {
            client.describe(file, name, value)?;
        }
        let size = PIECE * PIECES;
        let ahead = match client.choices.percent(ALLOCATED) {
            true => Action::Allocate { offset: 0, len: size, keep_size: false },
            false => Action::Resize { size },
        };
        client.change(file, ahead)?;
        let with_care = client.choices.percent(WITH_CARE);
        Ok(Current { file, with_care, missing: (0..PIECES).collect() })
    }

    fn end(&mut self, client: &mut TaskClient, whole: Current) -> Result<()> {
        let number = self.begun;
        if whole.with_care {
            client.sync(whole.file, false)?;
        }
        client.close(whole.file)?;
        client.rename(&format!("download/{number}.part"), &format!("download/{number}"))?;
        if whole.with_care {
            client.sync_folder("download")?;
        }
        Ok(())
    }

    /// Of those before the current one, the oldest goes.
    fn make_room(&self, client: &mut TaskClient) -> Result<()> {
        match self.begun.checked_sub(client.parameters.downloads_kept + 1) {
            None | Some(0) => Ok(()),
            Some(oldest) => client.remove(&format!("download/{oldest}")),
        }
    }
}

impl Task for Download {
    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.begin(client)?,
        };
        let which = client.choices.below(current.missing.len() as u64) as usize;
        let piece = current.missing.swap_remove(which);
        match piece {
            OF_JOURNAL => client.write_journal(current.file, piece * PIECE, PIECE)?,
            _ => client.write(current.file, piece * PIECE, PIECE)?,
        }
        let left = current.missing.len() as u64;
        if left == 0 {
            return self.end(client, current);
        }
        if left == PIECES / 2 {
            self.make_room(client)?;
        }
        if current.with_care && left.is_multiple_of(SYNCED) {
            client.sync(current.file, true)?;
        }
        self.current = Some(current);
        Ok(())
    }
}
