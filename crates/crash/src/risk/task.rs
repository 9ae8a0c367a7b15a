//! A program of the workload, and what it makes its calls with.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::pattern;
use steadfast_block::rng::Rng;
use steadfast_devices::store::Digest;
use steadfast_runtime::{Nanos, now, sleep};
use steadfast_vfs::{
    Fallocate, Fh, FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr,
    SetXattr,
};

use super::Speed;
use super::parameters::FilesWorkload;
use crate::account::{Account, Action, Call, CallId, Object};

/// A program of the workload.
pub(super) trait Task: Send {
    /// Makes what it needs in its folders; durable before anything is recorded.
    fn prepare(&mut self, _client: &mut TaskClient) -> Result<()> {
        Ok(())
    }

    /// One round: a few calls.
    fn round(&mut self, client: &mut TaskClient) -> Result<()>;
}

/// What a program makes its calls with: each is noted, timed, and followed by a pause.
pub(super) struct TaskClient {
    fs: Arc<dyn FileSystem>,
    account: Arc<Account>,
    pub choices: Rng,
    /// Of the workload.
    pub parameters: FilesWorkload,
    pause: Duration,
    speed: Speed,
    done: CallDigest,
    can: Capabilities,
}

impl TaskClient {
    /// Of a program that has not begun: nothing is counted, and there are no pauses.
    pub fn new(
        fs: &Arc<dyn FileSystem>,
        account: &Arc<Account>,
        (choices, parameters): (Rng, FilesWorkload),
        can: Capabilities,
    ) -> Self {
        TaskClient {
            fs: Arc::clone(fs),
            account: Arc::clone(account),
            choices,
            parameters,
            pause: Duration::ZERO,
            speed: Speed::default(),
            done: CallDigest::default(),
            can,
        }
    }

    /// Counts from here on, and pauses after each call.
    pub fn begin(&mut self) {
        self.pause = Duration::from_secs_f64(self.parameters.pause_ms / 1e3);
        (self.speed, self.done) = (Speed::default(), CallDigest::default());
    }

    /// How fast its calls were, and a number for the first of them.
    pub fn end(self) -> (Speed, u64) {
        (self.speed, number_of(&self.done.digest))
    }

    fn call<T>(
        &mut self,
        call: Call<'_>,
        make: impl FnOnce(&dyn FileSystem, &CallId) -> Result<T>,
    ) -> Result<(CallId, T)> {
        let is_sync = matches!(call, Call::SyncFile(_) | Call::SyncFolder(_) | Call::SyncAll);
        self.done.add(&call);
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
        let (started, (attr, fh)) = self.call(Call::Create(path), |fs, _| {
            let (dir, name) = place(fs, path)?;
            let flags = OpenFlags::READ | OpenFlags::WRITE;
            fs.create(dir, name, NewNode::default(), flags)
        })?;
        Ok(Open { object: started.object, ino: attr.ino, fh })
    }

    /// Writes stamped data; offset and length in bytes, multiples of 512.
    pub fn write(&mut self, file: Open, offset: u64, len: u64) -> Result<()> {
        self.write_as(Call::Write(file.object, offset, len), (file, offset, len))
    }

    /// Writes what begins as the blocks of a journal do: once a file.
    pub fn write_journal(&mut self, file: Open, offset: u64, len: u64) -> Result<()> {
        self.write_as(Call::WriteJournal(file.object, offset, len), (file, offset, len))
    }

    fn write_as(&mut self, call: Call<'_>, (file, offset, len): (Open, u64, u64)) -> Result<()> {
        self.call(call, |fs, started| {
            let data = pattern::bytes(started.tag, offset, len as usize);
            match fs.write(file.fh, offset, data)? {
                written if written as u64 == len => Ok(()),
                _ => Err(FsError::NoSpace { what: "blocks" }),
            }
        })
        .map(drop)
    }

    /// fsync, or fdatasync.
    pub fn sync(&mut self, file: Open, data_only: bool) -> Result<()> {
        self.call(Call::SyncFile(file.object), |fs, _| fs.fsync(file.fh, data_only)).map(drop)
    }

    /// fsync of a folder.
    pub fn sync_folder(&mut self, folder: &str) -> Result<()> {
        self.call(Call::SyncFolder(folder), |fs, _| fs.fsyncdir(folder_ino(fs, folder)?)).map(drop)
    }

    /// Sets the size, allocates a range or makes a hole; the last two only where that can be done.
    pub fn change(&mut self, file: Open, action: Action) -> Result<()> {
        let possible = match action {
            Action::Allocate { .. } => self.can.allocate,
            Action::Clear { .. } => self.can.make_holes,
            Action::Resize { .. } | Action::Write { .. } => true,
        };
        if !possible {
            return Ok(());
        }
        self.call(Call::Change(file.object, action), |fs, _| match action {
            Action::Resize { size } => {
                let set = SetAttr { size: Some(size), ..SetAttr::default() };
                fs.setattr(file.ino, set).map(drop)
            }
            Action::Clear { offset, len } => {
                fs.fallocate(file.fh, Fallocate::PunchHole, offset, len)
            }
            Action::Allocate { offset, len, keep_size } => {
                fs.fallocate(file.fh, Fallocate::Allocate { keep_size }, offset, len)
            }
            Action::Write { .. } => Err(FsError::Invalid { what: "a write is no change" }),
        })?;
        Ok(())
    }

    /// Sets an attribute of a file, which nothing promises: no call that is counted.
    pub fn describe(&mut self, file: Open, name: &str, value: &str) -> Result<()> {
        if !self.can.attributes {
            return Ok(());
        }
        self.fs.setxattr(file.ino, name.as_bytes(), value.as_bytes(), SetXattr::Any)
    }

    /// Makes a folder.
    pub fn make_folder(&mut self, path: &str) -> Result<()> {
        self.call(Call::MakeFolder(path), |fs, _| make_folder(fs, path)).map(drop)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&mut self, path: &str) -> Result<()> {
        self.call(Call::RemoveFolder(path), |fs, _| {
            let (dir, name) = place(fs, path)?;
            fs.rmdir(dir, name)
        })?;
        Ok(())
    }

    /// Gives a file one name more.
    pub fn link(&mut self, from: &str, to: &str) -> Result<()> {
        self.call(Call::Link(from, to), |fs, _| {
            let ((from_dir, from), (to_dir, to)) = (place(fs, from)?, place(fs, to)?);
            let file = fs.lookup(from_dir, from)?.ino;
            fs.link(file, to_dir, to).map(drop)
        })?;
        Ok(())
    }

    /// Renames, replacing what is there.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.call(Call::Rename(from, to), |fs, _| {
            fs.rename(place(fs, from)?, place(fs, to)?, RenameFlags::empty())
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

/// An open file of the workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub object: Object,
    ino: Ino,
    fh: Fh,
}

/// A number for the first calls of a program: what it does, and not how far it gets.
#[derive(Default)]
struct CallDigest {
    calls: u64,
    digest: Digest,
}

/// So many of each program are in the number.
const CALLS_NUMBERED: u64 = 100;

impl CallDigest {
    fn add(&mut self, call: &Call<'_>) {
        if self.calls == CALLS_NUMBERED {
            return;
        }
        self.calls += 1;
        // Which of all files it is follows from how fast the programs are.
        let text = match call {
            Call::Write(_, offset, len) => format!("write {offset} {len}"),
            Call::WriteJournal(_, offset, len) => format!("write journal {offset} {len}"),
            Call::Change(_, action) => format!("{action:?}"),
            Call::SyncFile(_) => "sync".to_owned(),
            named => format!("{named:?}"),
        };
        self.digest.bytes(text.as_bytes());
    }
}

/// At most 52 bits, so that JSON keeps it.
pub(super) fn number_of(digest: &Digest) -> u64 {
    digest.end() as u64 & ((1 << 52) - 1)
}

/// What not every file system can. Programs do without it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capabilities {
    allocate: bool,
    make_holes: bool,
    attributes: bool,
}

impl Capabilities {
    /// Tries it on a file that goes again.
    pub fn of(fs: &dyn FileSystem) -> Result<Capabilities> {
        const NAME: &[u8] = b"tried";
        // A host says it by its number.
        let no = FsError::Unsupported { what: String::new() }.errno();
        let able = |tried: Result<()>| match tried {
            Ok(()) => Ok(true),
            Err(e) if e.errno() == no => Ok(false),
            Err(e) => Err(e),
        };
        let flags = OpenFlags::READ | OpenFlags::WRITE;
        let (file, fh) = fs.create(fs.root(), NAME, NewNode::default(), flags)?;
        let range = |what| able(fs.fallocate(fh, what, 0, 4096));
        let can = Capabilities {
            allocate: range(Fallocate::Allocate { keep_size: true })?,
            make_holes: range(Fallocate::PunchHole)?,
            attributes: able(fs.setxattr(file.ino, b"user.tried", b"", SetXattr::Any))?,
        };
        fs.release(fh)?;
        fs.unlink(fs.root(), NAME)?;
        Ok(can)
    }
}

pub(super) fn make_folder(fs: &dyn FileSystem, path: &str) -> Result<()> {
    let (dir, name) = place(fs, path)?;
    fs.mkdir(dir, name, NewNode { mode: 0o755, ..NewNode::default() }).map(drop)
}

fn folder_ino(fs: &dyn FileSystem, folder: &str) -> Result<Ino> {
    let mut names = folder.split('/').filter(|name| !name.is_empty());
    names.try_fold(fs.root(), |dir, name| Ok(fs.lookup(dir, name.as_bytes())?.ino))
}

/// The folder and the name of a path.
fn place<'p>(fs: &dyn FileSystem, path: &'p str) -> Result<(Ino, &'p [u8])> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((folder_ino(fs, folder)?, name.as_bytes()))
}
