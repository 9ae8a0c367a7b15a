//! A log: records are appended, the oldest file goes when a new one begins.

use std::collections::VecDeque;

use steadfast_vfs::Result;

use super::super::task::{Open, Task, TaskClient};
use super::RECORDS_A_SYNC;

/// Bytes of a record.
const RECORD: (u64, u64) = (1 << 10, 8 << 10);

/// See the module's text.
#[derive(Default)]
pub struct Log {
    /// Files that are there, by number; the last one is being written.
    files: VecDeque<u64>,
    open: Option<(Open, u64)>,
    made: u64,
    records: u64,
}

impl Log {
    fn next_file(&mut self, client: &mut TaskClient) -> Result<(Open, u64)> {
        if let Some((full, _)) = self.open.take() {
            client.close(full)?;
        }
        self.made += 1;
        let file = client.create(&format!("log/{}", self.made))?;
        self.files.push_back(self.made);
        if self.files.len() > client.parameters.logs_kept
            && let Some(oldest) = self.files.pop_front()
        {
            client.remove(&format!("log/{oldest}"))?;
        }
        Ok((file, 0))
    }
}

impl Task for Log {
    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        let (file, end) = match self.open {
            Some((file, end)) if end < (client.parameters.log_kb << 10) => (file, end),
            _ => self.next_file(client)?,
        };
        let len = client.length(RECORD.0, RECORD.1);
        client.write(file, end, len)?;
        self.open = Some((file, end + len));
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_A_SYNC) {
            client.sync(file, false)?;
        }
        Ok(())
    }
}
