//! A log: records are appended, the oldest file goes when a new one begins.

use std::collections::VecDeque;

use steadfast_vfs::Result;

use super::super::task::{Open, Task, TaskClient};
use super::RECORDS_A_SYNC;

/// Bytes of a record.
const RECORD: (u64, u64) = (1 << 10, 8 << 10);

/// See the module's text.
pub struct Log {
    full_at: u64,
    kept: usize,
    /// Files that are there, by number; the last one is being written.
    files: VecDeque<u64>,
    open: Option<(Open, u64)>,
    made: u64,
    records: u64,
}

impl Log {
    /// Files of `full_at` bytes, `kept` of them.
    pub fn new(full_at: u64, kept: usize) -> Self {
        Log { full_at, kept, files: VecDeque::new(), open: None, made: 0, records: 0 }
    }

    fn next_file(&mut self, client: &mut TaskClient) -> Result<(Open, u64)> {
        if let Some((full, _)) = self.open.take() {
            client.close(full)?;
        }
        self.made += 1;
        let file = client.create(&format!("log/{}", self.made))?;
        self.files.push_back(self.made);
        if self.files.len() > self.kept
            && let Some(oldest) = self.files.pop_front()
        {
            client.remove(&format!("log/{oldest}"))?;
        }
        Ok((file, 0))
    }
}

impl Task for Log {
    fn folders(&self) -> &'static [&'static str] {
        &["log"]
    }

    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        let (file, end) = match self.open {
            Some((file, end)) if end < self.full_at => (file, end),
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
