//! A database: commits are appended to a log that is allocated ahead, and the pages that they
//! changed are written at a checkpoint, after which the log is cut off.

use steadfast_vfs::Result;

use super::super::task::{Open, Task, TaskClient};
use crate::account::Action;

/// Bytes of a record of the log.
const RECORD: (u64, u64) = (512, 4 << 10);
/// A commit is of at most so many records.
const RECORDS: u64 = 4;
/// The log is allocated ahead by so many bytes.
const AHEAD: u64 = 64 << 10;
/// Bytes of a page.
const PAGE: u64 = 4 << 10;
/// Pages in the beginning, and at most.
const PAGES: (u64, u64) = (64, 256);
/// So many pages are written at a checkpoint,
const WRITTEN: u64 = 16;
/// and of a hundred so many are new ones at the end.
const NEW_PERCENT: u64 = 20;

/// See the module's text.
#[derive(Default)]
pub struct Database {
    files: Option<(Open, Open)>,
    log_end: u64,
    allocated: u64,
    pages: u64,
}

impl Database {
    fn checkpoint(&mut self, client: &mut TaskClient, log: Open, pages: Open) -> Result<()> {
        for _ in 0..WRITTEN {
            let is_new = self.pages < PAGES.1 && client.choices.percent(NEW_PERCENT);
            let page = if is_new { self.pages } else { client.choices.below(self.pages) };
            client.write(pages, page * PAGE, PAGE)?;
            self.pages += u64::from(is_new);
        }
        client.sync(pages, true)?;
        client.change(log, Action::EMPTY)?;
        (self.log_end, self.allocated) = (0, 0);
        Ok(())
    }
}

impl Task for Database {
    fn prepare(&mut self, client: &mut TaskClient) -> Result<()> {
        self.pages = PAGES.0;
        let pages = client.create("database/pages")?;
        client.write(pages, 0, self.pages * PAGE)?;
        self.files = Some((client.create("database/log")?, pages));
        Ok(())
    }

    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        let Some((log, pages)) = self.files else { return Ok(()) };
        for _ in 0..=client.choices.below(RECORDS) {
            let len = client.length(RECORD.0, RECORD.1);
            if self.log_end + len > self.allocated {
                let ahead =
                    Action::Allocate { offset: self.allocated, len: AHEAD, keep_size: true };
                client.change(log, ahead)?;
                self.allocated += AHEAD;
            }
            client.write(log, self.log_end, len)?;
            self.log_end += len;
        }
        client.sync(log, true)?;
        if self.log_end >= (client.parameters.log_kb << 10) {
            self.checkpoint(client, log, pages)?;
        }
        Ok(())
    }
}
