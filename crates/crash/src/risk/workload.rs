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
use super::parameters::FilesWorkload;
use super::task::{Capabilities, Task, TaskClient, make_folder, number_of};
use super::tasks::{Backup, ConfigTask, Database, Download, Log, Mail, StoreTask, Table};
use crate::account::{Account, Call, History};

/// What a run brings beside the recording.
pub struct FilesRun {
    /// What it did and was promised.
    pub history: History,
    /// How fast it was.
    pub speed: Speed,
    /// A number for what the programs did first, whatever the file system made of it.
    pub programs: u64,
}

/// A program with what it makes its calls with.
struct RunningTask {
    /// Its folders, to be made before it begins.
    folders: &'static [&'static str],
    task: Box<dyn Task>,
    client: TaskClient,
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
        let client = |number| {
            let choices = Rng::new(self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
            TaskClient::new(fs, &account, (choices, self.clone()), can)
        };
        let mut running = FilesWorkload::tasks((1..).map(client));
        self.prepare(fs, &account, &mut running).map_err(|e| format!("preparing: {e}"))?;
        begin()?;
        let (speed, programs) = self.go(running)?;
        Ok(FilesRun { history: account.take(), speed, programs })
    }

    fn tasks(clients: impl Iterator<Item = TaskClient>) -> Vec<RunningTask> {
        let tasks: [(&[&str], Box<dyn Task>); 8] = [
            (&["log"], Box::new(Log::default())),
            (&["table"], Box::new(Table::default())),
            (&["config"], Box::new(ConfigTask::default())),
            (&["new", "read"], Box::new(Mail::default())),
            (&["database"], Box::new(Database::default())),
            (&["store"], Box::new(StoreTask::default())),
            (&["download"], Box::new(Download::default())),
            (&["backup"], Box::new(Backup::default())),
        ];
        let running = tasks.into_iter().zip(clients);
        running.map(|((folders, task), client)| RunningTask { folders, task, client }).collect()
    }

    fn prepare(
        &self,
        fs: &Arc<dyn FileSystem>,
        account: &Account,
        running: &mut [RunningTask],
    ) -> Result<()> {
        for RunningTask { folders, task, client } in running {
            for folder in *folders {
                make_folder(&**fs, folder)?;
            }
            task.prepare(client)?;
            client.begin();
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
    fn go(&self, running: Vec<RunningTask>) -> crate::Result<(Speed, u64)> {
        let began = now();
        let until = began + Duration::from_secs_f64(self.seconds);
        let rounds_least = self.rounds_least;
        let tasks: Vec<_> = running
            .into_iter()
            .map(|RunningTask { folders, mut task, mut client }| {
                let name = folders[0];
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
