//! The commands of the Solaris Volume Manager, done by a running host.
//!
//! Crate `svm` takes the command lines apart and has the forms; here they meet a host. An error is
//! reported as there, `COMMAND: MACHINE: NAME: what`, and the exit status is 1, also where others
//! of our commands have 2 or 3: that is what scripts for Solaris expect.

mod change;
pub mod cli;
pub mod host;
mod link;
mod seen;
mod show;

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use steadfast_stack::protocol::Request;
use steadfast_svm::command::{CommandError, Misuse};
use steadfast_svm::{Command, parse};

use self::cli::{Svm, SvmCommand};
use self::host::SvmHost;
use crate::{CommandEnd, terminal};

/// Status of an error; ramdiskadm has another one for what it cannot read.
const FAILED: u8 = 1;
const RAMDISKADM_USAGE: u8 = 2;

/// Why a command ended early.
enum Stop {
    /// As the volume manager reports it.
    Refused(CommandError),
    /// Our own affair: nobody reads the output any more.
    Ours(anyhow::Error),
}

impl From<CommandError> for Stop {
    fn from(error: CommandError) -> Self {
        Stop::Refused(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::Ours(error.into())
    }
}

/// Does what was asked.
pub fn run(svm: &Svm, out: &mut dyn Write) -> Result<CommandEnd> {
    if let SvmCommand::Link { folder } = &svm.command {
        link::link(folder)?;
        return Ok(CommandEnd::Good);
    }
    let Some((name, words)) = svm.command.called() else { return Ok(CommandEnd::Good) };
    let status = match parse(name, words) {
        Ok(command) => match done(&command, svm.socket.as_deref(), name, out) {
            Ok(true) => return Ok(CommandEnd::Good),
            // It was reported where it happened.
            Ok(false) => FAILED,
            Err(Stop::Refused(error)) => {
                report(name, &error);
                FAILED
            }
            Err(Stop::Ours(error)) => return Err(error),
        },
        Err(Misuse::Help(usage)) => {
            write!(out, "{usage}")?;
            return Ok(CommandEnd::Good);
        }
        Err(Misuse::Refused(error)) => {
            report(name, &error);
            FAILED
        }
        Err(Misuse::Usage { hint, usage }) => {
            if let Some(hint) = hint {
                terminal::note(&format!("{name}: {hint}"));
            }
            terminal::note(usage.trim_end());
            if name == "ramdiskadm" { RAMDISKADM_USAGE } else { FAILED }
        }
    };
    Ok(CommandEnd::Status(status))
}

/// Whether all went well.
fn done(
    command: &Command,
    socket: Option<&Path>,
    name: &str,
    out: &mut dyn Write,
) -> Result<bool, Stop> {
    let mut host = SvmHost::connect(socket)?;
    match command {
        Command::Init(init) => change::init(&mut host, init, out)?,
        Command::Attach(attach) => change::attach(&mut host, attach, out)?,
        Command::Detach(of) => {
            change::take_out(&mut host, of, (Request::Remove, "detached"), out)?;
        }
        Command::Offline(of) => {
            change::take_out(&mut host, of, (Request::Offline, "offlined"), out)?;
        }
        Command::Online(of) => change::online(&mut host, of, out)?,
        Command::Replace(replace) => change::replace(&mut host, replace, out)?,
        Command::Sync(sync) => return change::sync(&mut host, sync, name),
        Command::Param(param) => change::param(&mut host, param, out)?,
        Command::Clear(clear) => return change::clear(&mut host, clear, name, out),
        Command::Ramdisk(ramdisk) => change::ramdisk(&mut host, ramdisk, out)?,
        Command::Hs(spares) => change::spares(&mut host, spares, out)?,
        Command::Stat(stat) => return show::stat(&mut host, stat, name, out),
        Command::Db(db) => show::replicas(&mut host, db, name, out)?,
    }
    Ok(true)
}

/// Reports what is wrong, as the volume manager does: command, machine, name, what.
fn report(command: &str, error: &CommandError) {
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    terminal::note(&format!("{command}: {machine}: {error}"));
}
