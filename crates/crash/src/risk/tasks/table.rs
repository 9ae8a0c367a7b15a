//! A table: records of a file are overwritten in place.

use steadfast_block::pattern::SECTOR;
use steadfast_vfs::Result;

use super::super::task::{Open, Task, TaskClient};
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

    fn prepare(&mut self, client: &mut TaskClient) -> Result<()> {
        let file = client.create("table/rows")?;
        for at in (0..self.bytes).step_by(FILLED as usize) {
            client.write(file, at, FILLED.min(self.bytes - at))?;
        }
        self.open = Some(file);
        Ok(())
    }

    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        let Some(file) = self.open else { return Ok(()) };
        let len = client.length(RECORD.0, RECORD.1).min(self.bytes);
        let sector = SECTOR as u64;
        let at = client.choices.below((self.bytes - len) / sector + 1) * sector;
        client.write(file, at, len)?;
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_A_SYNC) {
            client.sync(file, true)?;
        }
        Ok(())
    }
}
