//! A running host, in the volume manager's terms.
//!
//! A device that has another name is shown by that: so is a RAM disk by the name of a slice, as
//! where the volume manager took none but slices.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steadfast_stack::client::Client;
use steadfast_stack::protocol::{
    Alias, Answer, Create, CreateRamDisk, Destroy, DeviceKind, Grow, Leg, NameRequest,
    NewComponent, Refusal, Replace, Request, Resync, Set, StackStatus, VolumeKind,
};
use steadfast_svm::State;
use steadfast_svm::command::{Changes, CommandError, ReadOption, WriteOption};
use steadfast_svm::iostat::{Counters, Queue};
use steadfast_svm::name;

use super::seen;
use crate::commands::serve::default_socket;

/// A volume that is to be made.
pub enum NewVolume {
    /// One component after the other.
    Concat { components: Vec<String> },
    /// Pieces of each in turn.
    Stripe { components: Vec<String>, interlace: u64 },
    /// A mirror of one submirror.
    Mirror { submirror: String, read: ReadOption, write: WriteOption, pass: u8 },
}

/// Counters of everything, at one time of the host's clock.
pub struct Reading {
    /// Nanoseconds since the host was started.
    pub at_ns: u64,
    /// Process of the host: another one has begun anew.
    pub process: u32,
    /// In the order in which they are shown.
    pub lines: Vec<Line>,
}

/// Counters of a device or volume.
pub struct Line {
    /// Its name.
    pub name: String,
    /// The name in the last column.
    pub shown: String,
    pub counters: Counters,
}

/// A host.
pub struct SvmHost {
    client: Client,
    state: State,
    tree: Option<PathBuf>,
    aliases: Vec<Alias>,
}

type HostResult = Result<(), CommandError>;

impl SvmHost {
    /// Whoever answers at this socket, or at the usual one.
    pub fn connect(socket: Option<&Path>) -> Result<SvmHost, CommandError> {
        let socket = socket.map_or_else(default_socket, Path::to_path_buf);
        let client = Client::connect(&socket).map_err(|error| command_error(&error))?;
        Ok(SvmHost { client, state: State::default(), tree: None, aliases: Vec::new() })
    }

    fn call(&self, request: &Request) -> Result<Answer, CommandError> {
        let answer = self.client.call(request).map_err(|error| command_error(&error))?;
        answer.notes.iter().for_each(|note| crate::terminal::note(&format!("note: {note}")));
        Ok(answer)
    }

    fn status(&self) -> Result<StackStatus, CommandError> {
        let lost = || CommandError::of("the host's answer makes no sense: it has no status");
        self.call(&Request::Status)?.stack.ok_or_else(lost)
    }

    /// Everything, as of now.
    pub fn state(&mut self) -> Result<State, CommandError> {
        let status = self.status()?;
        self.tree.clone_from(&status.tree);
        self.aliases.clone_from(&status.aliases);
        self.state = seen::state(&status);
        Ok(self.state.clone())
    }

    /// The name by which [`state`](Self::state) has this.
    pub fn shown(&self, name: &str) -> String {
        seen::shown(&self.aliases, name)
    }

    /// Everything, as the host reported it last.
    pub fn last_state(&self) -> &State {
        &self.state
    }

    /// Where RAM disks are files.
    pub fn ramdisk_folder(&self) -> String {
        let tree = self.tree.as_deref().unwrap_or(Path::new("/dev"));
        tree.join("ramdisk").display().to_string()
    }

    /// Makes a volume, or says whether it could be made.
    pub fn create(&self, name: &str, new: &NewVolume, force: bool, dry_run: bool) -> HostResult {
        let create = Create { name: name.to_owned(), force, dry_run, ..Create::default() };
        let create = match new {
            NewVolume::Concat { components } => {
                Create { kind: VolumeKind::Concat, components: components.clone(), ..create }
            }
            NewVolume::Stripe { components, interlace } => {
                // OK to saturate: the grammar allows no more than 100 megabytes.
                let interlace = Some(u32::try_from(*interlace).unwrap_or(u32::MAX));
                let (kind, components) = (VolumeKind::Stripe, components.clone());
                Create { kind, components, interlace, ..create }
            }
            NewVolume::Mirror { submirror, read, write, pass } => Create {
                kind: VolumeKind::Mirror,
                components: vec![submirror.clone()],
                read: Some(read.name().to_owned()),
                write: Some(write.name().to_owned()),
                pass: Some(*pass),
                ..create
            },
        };
        self.call(&Request::Create(create)).map(drop)
    }

    /// Gives a mirror a submirror.
    pub fn attach(&self, mirror: &str, component: &str, force: bool) -> HostResult {
        let (name, component) = (mirror.to_owned(), component.to_owned());
        let new = NewComponent { name, component, force, ..NewComponent::default() };
        self.call(&Request::Add(new)).map(drop)
    }

    /// Gives a mirror a hot spare, or says whether it could have it.
    pub fn add_spare(&self, mirror: &str, component: &str, dry_run: bool) -> HostResult {
        let (name, component) = (mirror.to_owned(), component.to_owned());
        let new = NewComponent { name, component, spare: true, dry_run, ..NewComponent::default() };
        self.call(&Request::Add(new)).map(drop)
    }

    /// Takes a hot spare of a mirror back.
    pub fn remove_spare(&self, mirror: &str, spare: &str) -> HostResult {
        let leg = Leg { name: mirror.to_owned(), leg: spare.to_owned(), ..Leg::default() };
        self.call(&Request::Remove(leg)).map(drop)
    }

    /// Makes a mirror as large as its submirrors allow.
    pub fn grow(&self, mirror: &str) -> HostResult {
        let grow = Grow { name: mirror.to_owned(), size: None };
        self.call(&Request::Grow(grow)).map(drop)
    }

    pub fn detach(&self, mirror: &str, submirror: &str) -> HostResult {
        self.call(&Request::Remove(leg(mirror, submirror))).map(drop)
    }

    pub fn offline(&self, mirror: &str, submirror: &str) -> HostResult {
        self.call(&Request::Offline(leg(mirror, submirror))).map(drop)
    }

    pub fn online(&self, mirror: &str, submirror: &str) -> HostResult {
        self.call(&Request::Online(leg(mirror, submirror))).map(drop)
    }

    /// Uses the same component again, or another one in its place.
    pub fn replace(&self, mirror: &str, component: &str, with: Option<&str>) -> HostResult {
        let (name, leg) = (mirror.to_owned(), component.to_owned());
        let with = with.map(str::to_owned);
        self.call(&Request::Replace(Replace { name, leg, with, ..Replace::default() })).map(drop)
    }

    /// Starts a resync.
    pub fn resync(&self, mirror: &str) -> HostResult {
        let resync = Resync { name: mirror.to_owned(), rate: None, wait: false };
        self.call(&Request::Resync(resync)).map(drop)
    }

    /// Stops it.
    pub fn stop_resync(&self, mirror: &str) -> HostResult {
        self.call(&Request::CancelResync(NameRequest { name: mirror.to_owned() })).map(drop)
    }

    /// Changes how a mirror works.
    pub fn set(&self, mirror: &str, changes: &Changes) -> HostResult {
        let set = Set {
            name: mirror.to_owned(),
            read: changes.read.as_ref().map(|read| read.name().to_owned()),
            write: changes.write.as_ref().map(|write| write.name().to_owned()),
            pass: changes.pass,
        };
        self.call(&Request::Set(set)).map(drop)
    }

    /// Takes a mirror apart; its data stays on its submirrors.
    pub fn retire(&self, mirror: &str) -> HostResult {
        let destroy = Destroy { name: mirror.to_owned(), keep_data: true, recursive: false };
        self.call(&Request::Destroy(destroy)).map(drop)
    }

    /// Takes a concat or stripe apart.
    pub fn wipe(&self, name: &str) -> HostResult {
        let destroy = Destroy { name: name.to_owned(), keep_data: false, recursive: false };
        self.call(&Request::Destroy(destroy)).map(drop)
    }

    pub fn add_ramdisk(&self, name: &str, bytes: u64) -> HostResult {
        let new = CreateRamDisk { name: name.to_owned(), bytes };
        self.call(&Request::CreateRamDisk(new)).map(drop)
    }

    pub fn delete_ramdisk(&self, name: &str) -> HostResult {
        self.call(&Request::DeleteRamDisk(NameRequest { name: name.to_owned() })).map(drop)
    }

    /// Counters of everything: disks, volumes, RAM disks.
    pub fn counters(&self) -> Result<Reading, CommandError> {
        let status = self.status()?;
        let lost = || CommandError::of("the host's answer makes no sense: it has no counters");
        let counters = self.call(&Request::Counters)?.counters.ok_or_else(lost)?;
        let shown = shown_names(&status);
        let line = |of: steadfast_stack::protocol::Counters| Line {
            shown: shown.get(&of.name).cloned().unwrap_or_else(|| of.name.clone()),
            name: of.name,
            counters: Counters {
                reads: of.reads,
                writes: of.writes,
                bytes_read: of.read_bytes,
                bytes_written: of.written_bytes,
                waiting: Queue::default(),
                served: Queue { busy_ns: of.run_ns, length_ns: of.run_len_ns },
            },
        };
        let mut lines: Vec<Line> = counters.of.into_iter().map(line).collect();
        let class = |shown: &str| match shown.split_once('/') {
            None => 0,
            Some(("md", _)) => 1,
            Some(_) => 2,
        };
        lines.sort_by_key(|line| (class(&line.shown), name::order(&line.name)));
        Ok(Reading { at_ns: counters.now_ns, process: status.pid, lines })
    }
}

/// The names of iostat's last column: drives, `md/` and `ramdisk/` with a name.
fn shown_names(status: &StackStatus) -> BTreeMap<String, String> {
    let drives: Vec<&str> = status.devices.iter().map(|d| name::drive(&d.name)).collect();
    let device = |name: &String, kind| match kind {
        DeviceKind::RamDisk => format!("ramdisk/{name}"),
        // Of several slices of a drive each has a line, and keeps its name.
        _ if drives.iter().filter(|drive| **drive == name::drive(name)).count() > 1 => name.clone(),
        _ => name::drive(name).to_owned(),
    };
    let devices = status.devices.iter().map(|d| (d.name.clone(), device(&d.name, d.kind)));
    let volumes = status.volumes.iter().map(|v| (v.name.clone(), format!("md/{}", v.name)));
    devices.chain(volumes).collect()
}

fn leg(mirror: &str, submirror: &str) -> Leg {
    Leg { name: mirror.to_owned(), leg: submirror.to_owned(), lose_data: false }
}

/// What a host refused. Its message says what it is about.
fn command_error(refusal: &Refusal) -> CommandError {
    // Options are called otherwise here.
    CommandError::of(refusal.error.replace("--force", "-f"))
}
