//! Mail: small files that come, are moved to another folder, and go.

use std::collections::VecDeque;

use steadfast_vfs::Result;

use super::super::task::{Task, TaskClient};

/// Bytes of a letter.
const LETTER: (u64, u64) = (512, 4 << 10);
/// After so many of 100 rounds the second folder is synced.
const SECOND_SYNCED: u64 = 12;

/// See the module's text.
#[derive(Default)]
pub struct Mail {
    come: u64,
    new: VecDeque<u64>,
    read: VecDeque<u64>,
}

impl Task for Mail {
    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        self.come += 1;
        let path = format!("new/{}", self.come);
        let file = client.create(&path)?;
        let len = client.length(LETTER.0, LETTER.1);
        client.write(file, 0, len)?;
        if client.choices.percent(client.parameters.letters_synced_percent) {
            client.sync(file, false)?;
            client.sync_folder("new")?;
        }
        client.close(file)?;
        self.new.push_back(self.come);
        // Now and then some are moved, so that a letter stays new for a while.
        while self.new.len() > 6 || (!self.new.is_empty() && client.choices.percent(30)) {
            let Some(n) = self.new.pop_front() else { break };
            client.rename(&format!("new/{n}"), &format!("read/{n}"))?;
            self.read.push_back(n);
        }
        if client.choices.percent(SECOND_SYNCED) {
            client.sync_folder("read")?;
        }
        if self.read.len() > client.parameters.letters_kept
            && let Some(n) = self.read.pop_front()
        {
            client.remove(&format!("read/{n}"))?;
        }
        Ok(())
    }
}
