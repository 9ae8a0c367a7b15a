//! A store of records in one file, as programs have them that map their file into memory: it grows
//! by its size or by what is written behind its end, records are written at any place, those that
//! have gone leave holes, and now and then it is made small again, and longer at once: the room
//! that it works in. For that it sorts in a file that has no name any more.

use steadfast_block::pattern::SECTOR;
use steadfast_vfs::Result;

use super::super::workload::{Hands, Open, Task};
use crate::ledger::Action;

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
pub struct Store {
    open: Option<Open>,
    size: u64,
    rounds: u64,
}

impl Store {
    fn place(&self, hands: &mut Hands, len: u64) -> u64 {
        let sector = SECTOR as u64;
        hands.choices.below((self.size - len) / sector + 1) * sector
    }

    fn resize(&mut self, hands: &mut Hands, file: Open, size: u64) -> Result<()> {
        self.size = size;
        hands.change(file, Action::Resize { size })
    }

    fn grow(&mut self, hands: &mut Hands, file: Open) -> Result<()> {
        if hands.choices.percent(50) {
            return self.resize(hands, file, self.size + GROWTH);
        }
        let behind = self.size;
        hands.write(file, behind, GROWTH / 4)?;
        self.size += GROWTH / 4;
        // What was written last is not needed any more; the size stays.
        hands.change(file, Action::Clear { offset: behind + GROWTH / 8, len: GROWTH / 8 })
    }

    fn make_small(&mut self, hands: &mut Hands, file: Open) -> Result<()> {
        let sorted = hands.create("store/sorted")?;
        hands.remove("store/sorted")?;
        hands.write(sorted, 0, GROWTH)?;
        hands.close(sorted)?;
        let size = hands.length(SMALL.0, SMALL.1);
        self.resize(hands, file, size)?;
        self.resize(hands, file, size + GROWTH)
    }
}

impl Task for Store {
    fn folders(&self) -> &'static [&'static str] {
        &["store"]
    }

    fn prepare(&mut self, hands: &mut Hands) -> Result<()> {
        let file = hands.create("store/data")?;
        self.resize(hands, file, SMALL.0)?;
        self.open = Some(file);
        Ok(())
    }

    fn round(&mut self, hands: &mut Hands) -> Result<()> {
        let Some(file) = self.open else { return Ok(()) };
        let len = hands.length(RECORD.0, RECORD.1);
        let offset = self.place(hands, len);
        hands.write(file, offset, len)?;
        self.rounds += 1;
        if self.rounds.is_multiple_of(HOLE) {
            let len = hands.length(HOLE_BYTES.0, HOLE_BYTES.1);
            let offset = self.place(hands, len);
            hands.change(file, Action::Clear { offset, len })?;
        }
        if self.rounds.is_multiple_of(SYNCED) {
            hands.sync(file, true)?;
        }
        if self.rounds.is_multiple_of(GROWS) {
            self.grow(hands, file)?;
        }
        if self.size >= FULL {
            self.make_small(hands, file)?;
        }
        Ok(())
    }
}
