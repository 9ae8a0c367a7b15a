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
#[derive(Default)]
pub struct Table {
    open: Option<Open>,
    records: u64,
}

impl Task for Table {
    fn prepare(&mut self, client: &mut TaskClient) -> Result<()> {
        let file = client.create("table/rows")?;
        let bytes = client.parameters.table_kb << 10;
        for at in (0..bytes).step_by(FILLED as usize) {
            client.write(file, at, FILLED.min(bytes - at))?;
        }
        self.open = Some(file);
        Ok(())
    }

    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        let Some(file) = self.open else { return Ok(()) };
        let bytes = client.parameters.table_kb << 10;
        let len = client.length(RECORD.0, RECORD.1).min(bytes);
        let sector = SECTOR as u64;
        let at = client.choices.below((bytes - len) / sector + 1) * sector;
        client.write(file, at, len)?;
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_A_SYNC) {
            client.sync(file, true)?;
        }
        Ok(())
    }
}
