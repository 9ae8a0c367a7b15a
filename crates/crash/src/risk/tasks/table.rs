//! A table: records of a file are overwritten in place.

use steadfast_block::pattern::SECTOR;
use steadfast_vfs::Result;

use super::super::workload::{Hands, Open, Task};
use super::RECORDS_A_SYNC;

/// Bytes of a record.
const RECORD: (u64, u64) = (4 << 10, 16 << 10);
/// The table is filled in pieces of so many bytes.
const FILLED: u64 = 64 << 10;

/// See the module's text.
pub struct Table {
    bytes: u64,
    open: Option<Open>,
    records: u64,
}

impl Table {
    /// A table of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Table { bytes, open: None, records: 0 }
    }
}

impl Task for Table {
    fn folders(&self) -> &'static [&'static str] {
        &["table"]
    }

    fn prepare(&mut self, hands: &mut Hands) -> Result<()> {
        let file = hands.create("table/rows")?;
        for at in (0..self.bytes).step_by(FILLED as usize) {
            hands.write(file, at, FILLED.min(self.bytes - at))?;
        }
        self.open = Some(file);
        Ok(())
    }

    fn round(&mut self, hands: &mut Hands) -> Result<()> {
        let Some(file) = self.open else { return Ok(()) };
        let len = hands.length(RECORD.0, RECORD.1).min(self.bytes);
        let sector = SECTOR as u64;
        let at = hands.choices.below((self.bytes - len) / sector + 1) * sector;
        hands.write(file, at, len)?;
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_A_SYNC) {
            hands.sync(file, true)?;
        }
        Ok(())
    }
}
