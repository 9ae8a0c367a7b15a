//! The workload: eight programs at once on one file system, each in folders of its own, each
//! pausing after every call.
//!
//! * *log*: appends, syncs every 8th record, begins another file when one is full; the oldest goes.
//! * *table*: overwrites records of a file that was there before, syncs every 8th.
//! * *config*: writes a new file, renames it over the old one, half the time with syncs.
//! * *mail*: makes small files, some of them synced, moves them to another folder; the oldest go.
//! * *database*: appends to a log that is allocated ahead, fdatasync after each commit; at a
//!   checkpoint it writes pages and cuts the log off.
//! * *store*: a file that it grows by its size and writes at random places, with holes where
//!   records were; made small again with the help of a file that has no name, and longer at once.
//! * *download*: images of disks, of which pieces come in any order, one of them that of a journal;
//!   sparse or allocated ahead; renamed when they are whole.
//! * *backup*: folders of hundreds of names, most of them links to the files of the one before.
//!
//! What it does follows from the seed; how far it gets follows from how long the calls take.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::RecordLog;
use steadfast_devices::store::Digest;
use steadfast_runtime::{now, spawn};
use steadfast_vfs::{FileSystem, FsError, Result};

use super::Speed;
use super::task::{Capabilities, Task, TaskClient, make_folder, number_of};
use super::tasks::{Backup, ConfigTask, Database, Download, Log, Mail, StoreTask, Table};
use crate::account::{Account, Call, History};

/// The workload's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesWorkload {
    /// Decides every choice.
    pub seed: u64,
    /// How long the programs go on making calls.
    pub run_for: Duration,
    /// Rounds that each program makes at the least, however long they take.
    pub rounds_least: u64,
    /// Mean of the pauses after the calls.
    pub pause: Duration,
    /// A log file is full at so many bytes.
    pub log_bytes: u64,
    /// Log files that are kept.
    pub logs_kept: usize,
    /// Bytes of the table.
    pub table_bytes: u64,
    /// How many configurations there are.
    pub configs: u64,
    /// Letters that stay; older ones are removed.
    pub letters_kept: usize,
    /// Of a hundred letters, so many are synced.
    pub letters_synced_percent: u64,
    /// Downloads that stay, of 1 MiB each; older ones are removed.
    pub downloads_kept: u64,
}

impl Default for FilesWorkload {
    /// A minute and a half: what nobody syncs waits for up to 35 seconds for the timers of a file
    /// system (`vm.dirty_expire_centisecs`, `vm.dirty_writeback_centisecs`) and some for a commit.
    /// So many letters are kept that none of them is removed before.
    fn default() -> Self {
        FilesWorkload {
            seed: 1,
            run_for: Duration::from_secs(90),
            rounds_least: 0,
            pause: Duration::from_millis(10),
            log_bytes: 256 << 10,
            logs_kept: 4,
            table_bytes: 1 << 20,
            configs: 4,
            letters_kept: 1000,
            letters_synced_percent: 50,
            downloads_kept: 3,
        }
    }
}

/// What a run brings beside the recording.
pub struct FilesRun {
    /// What it did and was promised.
    pub history: History,
    /// How fast it was.
    pub speed: Speed,
    /// A number for what the programs did first, whatever the file system made of it.
    pub programs: u64,
}

impl FilesWorkload {
    /// Runs it on `fs`, in either world: on Steadfast's own file system in virtual time, and on the
    /// kernel's, on the same device, in real time.
    ///
    /// Whoever records it builds the devices, puts what a used one holds on them, records them with
    /// `log` paused, makes the file system (without discarding: what was there before must stay, so
    /// that a stale block is seen) and mounts it. It prepares, makes that durable, and calls
    /// `begin`: the devices' contents at that moment, with their own caches written out, are
    /// [`CutSource::bases`](crate::explore::CutSource::bases); from there on the log is not paused.
    /// When it is done the recording is taken *before* the unmount.
    ///
    /// # Errors
    /// A call that failed, in words.
    pub fn run(
        &self,
        fs: &Arc<dyn FileSystem>,
        log: &RecordLog,
        begin: &mut dyn FnMut() -> crate::Result<()>,
    ) -> crate::Result<FilesRun> {
        let account = Arc::new(Account::new(log));
        let can = Capabilities::of(&**fs).map_err(|e| format!("trying what it can: {e}"))?;
        let mut running = Vec::new();
        for (task, number) in self.tasks().into_iter().zip(1..) {
            let choices = Rng::new(self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
            running.push((task, TaskClient::new(fs, &account, choices, can)));
        }
        self.prepare(fs, &account, &mut running).map_err(|e| format!("preparing: {e}"))?;
        begin()?;
        let (speed, programs) = self.go(running)?;
        Ok(FilesRun { history: account.take(), speed, programs })
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![
            Box::new(Log::new(self.log_bytes, self.logs_kept)),
            Box::new(Table::new(self.table_bytes)),
            Box::new(ConfigTask::new(self.configs)),
            Box::new(Mail::new(self.letters_kept, self.letters_synced_percent)),
            Box::new(Database::new(self.log_bytes)),
            Box::new(StoreTask::default()),
            Box::new(Download::new(self.downloads_kept)),
            Box::new(Backup::default()),
        ]
    }

    fn prepare(
        &self,
        fs: &Arc<dyn FileSystem>,
        account: &Account,
        running: &mut [(Box<dyn Task>, TaskClient)],
    ) -> Result<()> {
        for (task, client) in running {
            for folder in task.folders() {
                make_folder(&**fs, folder)?;
            }
            task.prepare(client)?;
            client.begin(self.pause);
        }
        let everything = account.begin(Call::SyncAll);
        fs.sync()?;
        match fs.transact() {
            Ok(()) | Err(FsError::Unsupported { .. }) => {}
            Err(e) => return Err(e),
        }
        account.end(&everything);
        Ok(())
    }

    /// Runs the programs side by side until their time is over.
    fn go(&self, running: Vec<(Box<dyn Task>, TaskClient)>) -> crate::Result<(Speed, u64)> {
        let began = now();
        let (until, rounds_least) = (began + self.run_for, self.rounds_least);
        let tasks: Vec<_> = running
            .into_iter()
            .map(|(mut task, mut client)| {
                let name = task.folders()[0];
                let work = move || -> Result<(Speed, u64)> {
                    let mut rounds = 0;
                    while now() < until || rounds < rounds_least {
                        task.round(&mut client)?;
                        rounds += 1;
                    }
                    Ok(client.end())
                };
                (name, spawn(name, work))
            })
            .collect();
        let (mut speed, mut programs) = (Speed::default(), Digest::new());
        for (name, task) in tasks {
            let done = task.join().unwrap_or_else(|p| p.resume());
            let (own, number) = done.map_err(|e| format!("the program '{name}': {e}"))?;
            speed.add(own);
            programs.word(number);
        }
        speed.elapsed = now().since(began);
        Ok((speed, number_of(&programs)))
    }
}
