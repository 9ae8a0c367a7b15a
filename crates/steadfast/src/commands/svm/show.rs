//! metastat and metadb: what a host has.

use std::io::Write;

use steadfast_svm::command::{CommandError, Db, Metastat};
use steadfast_svm::forms;

use super::host::SvmHost;
use super::{Stop, report};

/// Whether all names were volumes.
pub fn stat(
    host: &mut SvmHost,
    stat: &Metastat,
    name: &str,
    out: &mut dyn Write,
) -> Result<bool, Stop> {
    let state = host.state()?;
    let (text, unknown) = forms::stat(&state, stat);
    write!(out, "{text}")?;
    out.flush()?;
    for unknown in &unknown {
        report(name, &not_set_up(host, unknown));
    }
    Ok(unknown.is_empty())
}

/// Where the state is kept; or why nothing is added to that, or taken from it.
pub fn replicas(host: &mut SvmHost, db: &Db, name: &str, out: &mut dyn Write) -> Result<(), Stop> {
    let state = host.state()?;
    let known = |device: &String| match state.device(&host.shown(device)) {
        Some(_) => Ok(()),
        None => Err(CommandError::about(device.as_str(), "the host has no device of this name")),
    };
    match db {
        Db::Show { explain } => write!(out, "{}", forms::replicas(&state, *explain))?,
        Db::Add(devices) => {
            devices.iter().try_for_each(known)?;
            for device in devices {
                let what = "nothing to add: a device keeps the state of its volume itself";
                report(name, &CommandError::about(device.as_str(), what));
            }
        }
        Db::Delete(devices) => {
            devices.iter().try_for_each(known)?;
            let what = "its labels are not deleted: metaclear wipes them with the volume";
            return Err(CommandError::about(devices[0].as_str(), what).into());
        }
    }
    Ok(())
}

/// That there is no volume of this name.
pub fn not_set_up(host: &SvmHost, name: &str) -> CommandError {
    match host.last_state().device(&host.shown(name)) {
        Some(_) => CommandError::about(name, "not a metadevice: it is a device of the host's"),
        None => CommandError::about(name, "unit not set up"),
    }
}
