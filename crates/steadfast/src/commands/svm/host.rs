//! A running host, in the volume manager's terms.
//!
//! A device that has another name is shown by that: so is a RAM disk by the name of a slice, as
//! where the volume manager took none but slices.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steadfast_stack::client::Client;
use steadfast_stack::protocol::{Alias, Answer, DeviceKind, Refusal, Request, StackStatus};
use steadfast_svm::State;
use steadfast_svm::command::CommandError;
use steadfast_svm::iostat::{Counters, Queue};
use steadfast_svm::name;

use super::seen;
use crate::mount::place;

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

impl SvmHost {
    /// Whoever answers at this socket, or at the usual one.
    pub fn connect(socket: Option<&Path>) -> Result<SvmHost, CommandError> {
        let socket = socket.map_or_else(place::host_socket, Path::to_path_buf);
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

    /// Has a change made.
    pub fn ask(&self, request: Request) -> Result<(), CommandError> {
        self.call(&request).map(drop)
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
    let known: Vec<&str> = status.devices.iter().map(|d| d.name.as_str()).collect();
    let device = |name: &String, kind| match kind {
        DeviceKind::RamDisk => format!("ramdisk/{name}"),
        // Of several slices of a drive each has a line.
        _ => name::drive_or_slice(name, &known).to_owned(),
    };
    let devices = status.devices.iter().map(|d| (d.name.clone(), device(&d.name, d.kind)));
    let volumes = status.volumes.iter().map(|v| (v.name.clone(), format!("md/{}", v.name)));
    devices.chain(volumes).collect()
}

/// What a host refused. Its message says what it is about.
fn command_error(refusal: &Refusal) -> CommandError {
    // Options are called otherwise here.
    CommandError::of(refusal.error.replace("--force", "-f"))
}
