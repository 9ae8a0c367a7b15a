//! `steadfast volume create`, and devices that become members.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use steadfast_block::BlockDevice;
use steadfast_setup::path::{forget_occupant, members_of, refuse_twice};
use steadfast_volume::NewLeg;
use steadfast_volume::ondisk::label::LayoutKind;

use super::cli::{CreateArgs, Members};
use super::open::open_all;
use super::own::refuse_nobody;
use super::request;
use crate::CommandEnd;
use crate::commands::image::{open, open_file};
use crate::commands::serve::said;
use crate::setup_error::to_anyhow;

/// Makes a volume.
pub fn create(args: &CreateArgs, out: &mut dyn Write) -> Result<CommandEnd> {
    let create = request::create(args)?;
    let policies = create.policies().map_err(said)?;
    refuse_nobody(policies, |place| place < create.components.len())?;
    let all: Vec<PathBuf> = args.all().cloned().collect();
    let devices = open_all(&all, false)?;
    if !args.force {
        devices.iter().try_for_each(refuse_file_system)?;
    }
    let legs = !args.volatile.is_empty() || args.partial.is_some();
    let of_mirrors =
        legs || create.size.is_some() || create.region_bytes.is_some() || args.checksums;
    if of_mirrors && args.kind != LayoutKind::Mirror {
        usage!("--volatile, --partial, --size, --region and --checksums are for mirrors");
    }
    let member = |(n, device): (usize, &Arc<dyn BlockDevice>)| NewLeg {
        device: Arc::clone(device),
        volatile: n >= args.devices.len(),
        partial: n >= args.devices.len() + args.volatile.len(),
        force: args.force,
    };
    let members = devices.iter().enumerate().map(member).collect();
    let volume = create.new_volume(members, policies).make()?;
    volume.close()?;
    devices.iter().try_for_each(forget_occupant)?;
    let made = volume.device.info();
    writeln!(out, "{}: {}, {} bytes", args.name, made.model, made.size)?;
    Ok(CommandEnd::Good)
}

/// A device that is to become a leg: none of the members.
pub fn new_leg(members: &Members, path: &PathBuf, force: bool) -> Result<NewLeg> {
    refuse_twice(members.members.iter().chain([path]).map(PathBuf::as_path)).map_err(to_anyhow)?;
    let device = match members_of(path) {
        Some(_) => open(path, false)?,
        None => open_file(path, false)?,
    };
    if !force {
        refuse_file_system(&device)?;
    }
    Ok(NewLeg { force, ..NewLeg::new(device) })
}

/// A file system or journal that is there is not overwritten without being asked to.
pub fn refuse_file_system(device: &Arc<dyn BlockDevice>) -> Result<()> {
    // A member may have one from before; whose label it carries says more.
    if steadfast_volume::member::read_label(device).is_ok_and(|found| found.is_some()) {
        return Ok(());
    }
    let Some(held) = steadfast::occupant(device) else { return Ok(()) };
    let name = device.info().name;
    usage!("{name}: holds {held}; --force makes it a member, and what it holds is lost")
}
