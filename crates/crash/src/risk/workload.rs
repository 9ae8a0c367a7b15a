//! The workload: four programs at once on one file system, each in a folder of its own, each
//! pausing after every call.
//!
//! | program | what it does |
//! |---|---|
//! | log | appends, syncs every 8th, begins another file when one is full; the oldest goes |
//! | table | overwrites records of a file that was there before, syncs every 8th |
//! | config | writes a new file, renames it over the old one, half the time with syncs |
//! | mail | makes small files, half of them synced, moves them to another folder, removes some |
//!
//! What it does follows from the seed; how far it gets follows from how long the calls take.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::pattern;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::RecordLog;
use steadfast_runtime::{Nanos, now, sleep, spawn};
use steadfast_vfs::{Fh, FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result};

use super::Speed;
use super::history::{Account, Call, Object, Started};
use super::peer::{Ran, Workload};
use super::tasks::{Config, Log, Mail, Table};

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
}

impl Default for FilesWorkload {
    /// Twelve seconds, so that a commit interval of five passes twice.
    fn default() -> Self {
        FilesWorkload {
            seed: 1,
            run_for: Duration::from_secs(12),
            rounds_least: 0,
            pause: Duration::from_millis(10),
            log_bytes: 256 << 10,
            logs_kept: 4,
            table_bytes: 1 << 20,
            configs: 4,
        }
    }
}

/// A program of the workload.
pub(super) trait Task: Send {
    /// Its folders, to be made before it begins.
    fn folders(&self) -> &'static [&'static str];

    /// Makes what it needs; durable before anything is recorded.
    fn prepare(&mut self, _hands: &mut Hands) -> Result<()> {
        Ok(())
    }

    /// One round: a few calls.
    fn round(&mut self, hands: &mut Hands) -> Result<()>;
}

impl Workload for FilesWorkload {
    fn run(
        &self,
        fs: &Arc<dyn FileSystem>,
        log: &RecordLog,
        begin: &mut dyn FnMut() -> crate::Result<()>,
    ) -> crate::Result<Ran> {
        let account = Arc::new(Account::new(log));
        let mut running = Vec::new();
        for (task, number) in self.tasks().into_iter().zip(1..) {
            let hands = Hands {
                fs: Arc::clone(fs),
                account: Arc::clone(&account),
                choices: Rng::new(self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number)),
                pause: Duration::ZERO,
                speed: Speed::default(),
            };
            running.push((task, hands));
        }
        self.prepare(fs, &account, &mut running).map_err(|e| format!("preparing: {e}"))?;
        begin()?;
        let speed = self.go(running)?;
        Ok(Ran { judge: Arc::new(account.history()), speed })
    }
}

impl FilesWorkload {
    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![
            Box::new(Log::new(self.log_bytes, self.logs_kept)),
            Box::new(Table::new(self.table_bytes)),
            Box::new(Config::new(self.configs)),
            Box::new(Mail::default()),
        ]
    }

    fn prepare(
        &self,
        fs: &Arc<dyn FileSystem>,
        account: &Account,
        running: &mut [(Box<dyn Task>, Hands)],
    ) -> Result<()> {
        for (task, hands) in running {
            for folder in task.folders() {
                let node = NewNode { mode: 0o755, ..NewNode::default() };
                fs.mkdir(fs.root(), folder.as_bytes(), node)?;
            }
            task.prepare(hands)?;
            hands.pause = self.pause;
            hands.speed = Speed::default();
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
    fn go(&self, running: Vec<(Box<dyn Task>, Hands)>) -> crate::Result<Speed> {
        let began = now();
        let (until, rounds_least) = (began + self.run_for, self.rounds_least);
        let tasks: Vec<_> = running
            .into_iter()
            .map(|(mut task, mut hands)| {
                let name = task.folders()[0];
                let work = move || -> Result<Speed> {
                    let mut rounds = 0;
                    while now() < until || rounds < rounds_least {
                        task.round(&mut hands)?;
                        rounds += 1;
                    }
                    Ok(hands.speed)
                };
                (name, spawn(name, work))
            })
            .collect();
        let mut speed = Speed::default();
        for (name, task) in tasks {
            let done = task.join().unwrap_or_else(|p| p.resume());
            speed.add(done.map_err(|e| format!("the program '{name}': {e}"))?);
        }
        speed.elapsed = now().since(began);
        Ok(speed)
    }
}

/// What a program makes its calls with: each is noted, timed, and followed by a pause.
pub(super) struct Hands {
    fs: Arc<dyn FileSystem>,
    account: Arc<Account>,
    pub choices: Rng,
    pause: Duration,
    speed: Speed,
}

/// An open file of the workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub object: Object,
    fh: Fh,
}

impl Hands {
    fn call<T>(
        &mut self,
        call: Call<'_>,
        make: impl FnOnce(&dyn FileSystem, &Started) -> Result<T>,
    ) -> Result<(Started, T)> {
        let is_sync = matches!(call, Call::SyncFile(_) | Call::SyncFolder(_) | Call::SyncAll);
        let started = self.account.begin(call);
        let began: Nanos = now();
        let value = make(&*self.fs, &started)?;
        let took = now().since(began);
        self.account.end(&started);
        self.speed.count(took, is_sync);
        if !self.pause.is_zero() {
            let mean = u64::try_from(self.pause.as_nanos()).unwrap_or(u64::MAX);
            sleep(Duration::from_nanos(self.choices.below(mean.saturating_mul(2))));
        }
        Ok((started, value))
    }

    /// Makes a file and keeps it open.
    pub fn create(&mut self, path: &str) -> Result<Open> {
        let (started, fh) = self.call(Call::Create(path), |fs, _| {
            let (dir, name) = place(fs, path)?;
            let flags = OpenFlags::READ | OpenFlags::WRITE;
            fs.create(dir, name, NewNode::default(), flags).map(|(_, fh)| fh)
        })?;
        Ok(Open { object: started.object, fh })
    }

    /// Writes stamped data; offset and length in bytes, multiples of 512.
    pub fn write(&mut self, file: Open, offset: u64, len: u64) -> Result<()> {
        self.call(Call::Write(file.object, offset, len), |fs, started| {
            let data = pattern::bytes(started.tag, offset, len as usize);
            match fs.write(file.fh, offset, data)? {
                written if written as u64 == len => Ok(()),
                _ => Err(FsError::NoSpace { what: "blocks" }),
            }
        })?;
        Ok(())
    }

    /// fsync, or fdatasync.
    pub fn sync(&mut self, file: Open, data_only: bool) -> Result<()> {
        self.call(Call::SyncFile(file.object), |fs, _| fs.fsync(file.fh, data_only)).map(drop)
    }

    /// fsync of a folder.
    pub fn sync_folder(&mut self, folder: &str) -> Result<()> {
        self.call(Call::SyncFolder(folder), |fs, _| fs.fsyncdir(folder_ino(fs, folder)?)).map(drop)
    }

    /// Renames, replacing what is there.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.call(Call::Rename(from, to), |fs, _| {
            let ((from_dir, from), (to_dir, to)) = (place(fs, from)?, place(fs, to)?);
            fs.rename(from_dir, from, to_dir, to, RenameFlags::empty())
        })?;
        Ok(())
    }

    /// Removes a name.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        self.call(Call::Remove(path), |fs, _| {
            let (dir, name) = place(fs, path)?;
            fs.unlink(dir, name)
        })?;
        Ok(())
    }

    /// Closes a file: no call that is counted, it promises nothing.
    pub fn close(&mut self, file: Open) -> Result<()> {
        self.fs.release(file.fh)
    }

    /// A length of so many sectors, from `least` to `most` bytes.
    pub fn length(&mut self, least: u64, most: u64) -> u64 {
        let sector = pattern::SECTOR as u64;
        least + self.choices.below((most - least) / sector + 1) * sector
    }
}

fn folder_ino(fs: &dyn FileSystem, folder: &str) -> Result<Ino> {
    fs.lookup(fs.root(), folder.as_bytes()).map(|attr| attr.ino)
}

/// The folder and the name of a path of two parts.
fn place<'p>(fs: &dyn FileSystem, path: &'p str) -> Result<(Ino, &'p [u8])> {
    let (folder, name) = path.split_once('/').unwrap_or(("", path));
    let dir = if folder.is_empty() { fs.root() } else { folder_ino(fs, folder)? };
    Ok((dir, name.as_bytes()))
}
