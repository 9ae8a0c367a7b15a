//! Backups: each is a folder of hundreds of names. Files that have not changed are links to those
//! of the backup before; when a backup is complete, the one before that goes.

use steadfast_vfs::Result;

use super::super::task::{Task, TaskClient};

/// Names in a backup.
const NAMES: u64 = 300;
/// Of a hundred files, so many have changed.
const CHANGED: u64 = 20;
/// Bytes of a file.
const FILE: (u64, u64) = (512, 4 << 10);

/// See the module's text.
#[derive(Default)]
pub struct Backup {
    /// The one that is being made, from 1.
    number: u64,
    step: Step,
}

/// What is done next.
#[derive(Default, Clone, Copy)]
enum Step {
    /// A new backup begins.
    #[default]
    Begin,
    /// Its file of this number.
    Copy(u64),
    /// This file of the one before the last goes.
    Remove(u64),
}

fn folder(backup: u64) -> String {
    format!("backup/{backup}")
}

fn name(backup: u64, file: u64) -> String {
    format!("{}/picture-{file:06}.jpeg", folder(backup))
}

impl Backup {
    fn copy(&self, client: &mut TaskClient, file: u64) -> Result<()> {
        let path = name(self.number, file);
        let before = self.number - 1;
        if before > 0 && !client.choices.percent(CHANGED) {
            return client.link(&name(before, file), &path);
        }
        let new = client.create(&path)?;
        let len = client.length(FILE.0, FILE.1);
        client.write(new, 0, len)?;
        client.close(new)
    }
}

impl Task for Backup {
    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        self.step = match self.step {
            Step::Begin => {
                self.number += 1;
                client.make_folder(&folder(self.number))?;
                // What is promised of names in it needs its own.
                client.sync_folder("backup")?;
                Step::Copy(0)
            }
            Step::Copy(file) if file < NAMES => {
                self.copy(client, file)?;
                Step::Copy(file + 1)
            }
            Step::Copy(_) => {
                client.sync_folder(&folder(self.number))?;
                if self.number > 2 { Step::Remove(0) } else { Step::Begin }
            }
            Step::Remove(file) if file < NAMES => {
                client.remove(&name(self.number - 2, file))?;
                Step::Remove(file + 1)
            }
            Step::Remove(_) => {
                client.remove_folder(&folder(self.number - 2))?;
                Step::Begin
            }
        };
        Ok(())
    }
}
