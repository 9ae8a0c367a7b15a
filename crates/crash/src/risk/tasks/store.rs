//! A store of records in one file, as programs have them that map their file into memory: it grows
//! by its size or by what is written behind its end, records are written at any place, those that
//! have gone leave holes, and now and then it is made small again, and longer at once: the room
//! that it works in. For that it sorts in a file that has no name any more.

use steadfast_block::pattern::SECTOR;
use steadfast_vfs::Result;

use super::super::task::{Open, Task, TaskClient};
use crate::account::Action;

/// Bytes of a record.
const RECORD: (u64, u64) = (512, 4 << 10);
/// Every so many records are synced,
const SYNCED: u64 = 4;
/// a hole is made,
const HOLE: u64 = 6;
/// the file grows.
const GROWS: u64 = 8;
/// Bytes of a hole.
const HOLE_BYTES: (u64, u64) = (4 << 10, 32 << 10);
/// Bytes by which its size grows; of what is written behind its end a quarter.
const GROWTH: u64 = 64 << 10;
/// It is made small at so many bytes.
const FULL: u64 = 512 << 10;
/// Bytes of a small one.
const SMALL: (u64, u64) = (64 << 10, 128 << 10);

/// See the module's text.
#[derive(Default)]
pub struct StoreTask {
    open: Option<Open>,
    size: u64,
    rounds: u64,
}

impl StoreTask {
    fn place(&self, client: &mut TaskClient, len: u64) -> u64 {
        let sector = SECTOR as u64;
        client.choices.below((self.size - len) / sector + 1) * sector
    }

    fn resize(&mut self, client: &mut TaskClient, file: Open, size: u64) -> Result<()> {
        self.size = size;
        client.change(file, Action::Resize { size })
    }

    fn grow(&mut self, client: &mut TaskClient, file: Open) -> Result<()> {
        if client.choices.percent(50) {
            return self.resize(client, file, self.size + GROWTH);
        }
        let behind = self.size;
        client.write(file, behind, GROWTH / 4)?;
        self.size += GROWTH / 4;
        // What was written last is not needed any more; the size stays.
        client.change(file, Action::Clear { offset: behind + GROWTH / 8, len: GROWTH / 8 })
    }

    fn make_small(&mut self, client: &mut TaskClient, file: Open) -> Result<()> {
        let sorted = client.create("store/sorted")?;
        client.remove("store/sorted")?;
        client.write(sorted, 0, GROWTH)?;
        client.close(sorted)?;
        let size = client.length(SMALL.0, SMALL.1);
        self.resize(client, file, size)?;
        self.resize(client, file, size + GROWTH)
    }
}

impl Task for StoreTask {
    fn prepare(&mut self, client: &mut TaskClient) -> Result<()> {
        let file = client.create("store/data")?;
        self.resize(client, file, SMALL.0)?;
        self.open = Some(file);
        Ok(())
    }

    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        let Some(file) = self.open else { return Ok(()) };
        let len = client.length(RECORD.0, RECORD.1);
        let offset = self.place(client, len);
        client.write(file, offset, len)?;
        self.rounds += 1;
        if self.rounds.is_multiple_of(HOLE) {
            let len = client.length(HOLE_BYTES.0, HOLE_BYTES.1);
            let offset = self.place(client, len);
            client.change(file, Action::Clear { offset, len })?;
        }
        if self.rounds.is_multiple_of(SYNCED) {
            client.sync(file, true)?;
        }
        if self.rounds.is_multiple_of(GROWS) {
            self.grow(client, file)?;
        }
        if self.size >= FULL {
            self.make_small(client, file)?;
        }
        Ok(())
    }
}
