//! `steadfast volume create`, and devices that become members.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use steadfast_block::BlockDevice;
use steadfast_block::signatures;
use steadfast_setup::path::{members_of, refuse_twice};
use steadfast_volume::{MirrorOptions, NewLeg, Policies, create_mirror, create_rows};

use super::cli::{CreateArgs, Members, VolumeKind};
use super::open::open_all;
use super::{bytes, bytes_in_32_bits, given, refuse_nobody};
use crate::Usage;
use crate::commands::image::{open, open_file};
use crate::setup_error::to_anyhow;

/// Bytes at the start of a member that are nobody's: a superblock that is left there would be taken
/// for a file system's.
const START: usize = 4096;

/// Makes a volume.
pub fn create(args: &CreateArgs, out: &mut dyn Write) -> Result<()> {
    let all = args.devices.iter().chain(&args.volatile).chain(&args.partial);
    let all: Vec<_> = all.cloned().collect();
    let size = args.size.as_deref().map(|s| bytes("--size", s)).transpose()?;
    let region = args.region.as_deref().map(|r| bytes_in_32_bits("--region", r, "64m"));
    let region_bytes = region.transpose()?;
    let policies = given(&args.policies, Policies::default())?;
    refuse_nobody(policies, |place| place < all.len())?;
    let devices = open_all(&all, false)?;
    if !args.force {
        devices.iter().try_for_each(refuse_file_system)?;
    }
    let made = if args.kind == VolumeKind::Mirror {
        let volatile = |n: usize| n >= args.devices.len();
        let legs = devices.iter().enumerate().map(|(n, device)| NewLeg {
            device: Arc::clone(device),
            volatile: volatile(n),
            partial: n >= args.devices.len() + args.volatile.len(),
            force: args.force,
        });
        let legs: Vec<NewLeg> = legs.collect();
        let options = MirrorOptions {
            size,
            region_bytes,
            policies,
            checksums: args.checksums,
            ..MirrorOptions::default()
        };
        let mirror = create_mirror(&args.name, &legs, &options)?;
        mirror.close()?;
        mirror.info()
    } else {
        let legs = !args.volatile.is_empty() || args.partial.is_some();
        if legs || size.is_some() || region_bytes.is_some() || args.checksums {
            let what = "--volatile, --partial, --size, --region and --checksums are for mirrors";
            return Err(Usage(what.into()).into());
        }
        let stripe = args.kind == VolumeKind::Stripe;
        let interlace = stripe.then(|| bytes_in_32_bits("--interlace", &args.interlace, "100m"));
        create_rows(&args.name, &devices, interlace.transpose()?, args.force)?.device.info()
    };
    devices.iter().try_for_each(forget_file_system)?;
    writeln!(out, "{}: {}, {} bytes", args.name, made.model, made.size)?;
    Ok(())
}

/// A device that is to become a leg: none of the members.
pub fn new_leg(members: &Members, path: &PathBuf, volatile: bool, force: bool) -> Result<NewLeg> {
    refuse_twice(members.members.iter().chain([path]).map(PathBuf::as_path)).map_err(to_anyhow)?;
    let device = match members_of(path) {
        Some(_) => open(path, false)?,
        None => open_file(path, false)?,
    };
    if !force {
        refuse_file_system(&device)?;
    }
    Ok(NewLeg { device, volatile, partial: false, force })
}

/// A file system or journal that is there is not overwritten without being asked to.
pub fn refuse_file_system(device: &Arc<dyn BlockDevice>) -> Result<()> {
    // A member may have one from before; whose label it carries says more.
    if steadfast_volume::member::read_label(device).is_ok_and(|found| found.is_some()) {
        return Ok(());
    }
    let Some(held) = steadfast::occupant(device) else { return Ok(()) };
    let name = device.info().name;
    let what =
        format!("{name}: holds {held}; --force makes it a member, and what it holds is lost");
    Err(Usage(what).into())
}

/// Takes a superblock away that is before the label of a new member, and the signatures of what is
/// not ours.
pub fn forget_file_system(device: &Arc<dyn BlockDevice>) -> Result<()> {
    signatures::wipe(device)?;
    if steadfast_ext4_check::info(device).is_ok() {
        let name = device.info().name;
        device.write_fua(0, vec![0; START].into()).with_context(|| name)?;
    }
    Ok(())
}
