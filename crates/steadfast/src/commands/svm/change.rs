//! The commands that change something. What is refused changes nothing.

use std::io::Write;

use steadfast_stack::protocol::{
    Create, CreateRamDisk, Destroy, Grow, Leg, NameRequest, NewComponent, Replace, Request, Resync,
    Set,
};
use steadfast_svm::command::{
    Attach, Changes, Clear, ClearTarget, CommandError, Init, InitVolume, Metareplace, NewRow,
    Param, Pool, Ramdisk, Spares, SubmirrorArgs, Sync,
};
use steadfast_svm::state::{self, SubmirrorState};
use steadfast_svm::{State, forms};
use steadfast_volume::ondisk::label::{LayoutKind, SPARES_MAX};

use super::host::SvmHost;
use super::show::not_set_up;
use super::{Stop, report};

pub fn init(host: &mut SvmHost, init: &Init, out: &mut dyn Write) -> Result<(), Stop> {
    let state = host.state()?;
    let name = &init.name;
    if state.has_volume(name) {
        return Err(CommandError::about(name, "unit already set up").into());
    }
    let (new, what) = match &init.what {
        InitVolume::Concat(rows) => (row(name, rows)?, "Concat/Stripe"),
        InitVolume::Mirror { submirror, read, write, pass } => {
            free_submirror(host, &state, submirror)?;
            let (read, write) = (Some(read.name().to_owned()), Some(write.name().to_owned()));
            let (components, pass) = (vec![submirror.clone()], Some(*pass));
            (Create { components, read, write, pass, ..Create::default() }, "Mirror")
        }
    };
    let (name, force, dry_run) = (name.clone(), init.force, init.check_only);
    host.ask(Request::Create(Create { name, force, dry_run, ..new }))?;
    if !init.check_only {
        writeln!(out, "{}: {what} is setup", init.name)?;
    }
    Ok(())
}

/// Rows of one component are a concat, one row of several is a stripe.
fn row(name: &str, rows: &[NewRow]) -> Result<Create, CommandError> {
    match rows {
        [row] if row.components.len() > 1 => {
            // OK to saturate: the grammar allows no more than 100 megabytes.
            let interlace = Some(u32::try_from(row.interlace).unwrap_or(u32::MAX));
            let (kind, components) = (LayoutKind::Stripe, row.components.clone());
            Ok(Create { kind, components, interlace, ..Create::default() })
        }
        rows if rows.iter().all(|row| row.components.len() == 1) => {
            let components = rows.iter().flat_map(|row| row.components.clone()).collect();
            Ok(Create { kind: LayoutKind::Concat, components, ..Create::default() })
        }
        _ => {
            let what = "a concat of stripes is not made at once: make each stripe with a name of \
                        its own, and a concat of those";
            Err(CommandError::about(name, what))
        }
    }
}

/// A submirror is a concat or stripe that is part of nothing.
fn free_submirror(host: &SvmHost, state: &State, name: &str) -> Result<(), CommandError> {
    if !state.has_volume(name) {
        return Err(not_set_up(host, name));
    }
    if state.mirror(name).is_some() {
        return Err(CommandError::about(name, "a mirror is no submirror"));
    }
    match state.parent(name) {
        Some(parent) => Err(CommandError::about(name, format!("metadevice in use: by {parent}"))),
        None => Ok(()),
    }
}

pub fn attach(host: &mut SvmHost, attach: &Attach, out: &mut dyn Write) -> Result<(), Stop> {
    let state = host.state()?;
    let name = &attach.mirror;
    mirror(host, &state, name)?;
    match &attach.submirror {
        Some(submirror) => {
            free_submirror(host, &state, submirror)?;
            let (mirror, component, force) = (name.clone(), submirror.clone(), attach.force);
            let new = NewComponent { name: mirror, component, force, ..NewComponent::default() };
            host.ask(Request::Add(new))?;
            writeln!(out, "{name}: submirror {submirror} is attached")?;
        }
        None => {
            host.ask(Request::Grow(Grow { name: name.clone(), size: None }))?;
            writeln!(out, "{name}: Mirror has been grown")?;
        }
    }
    Ok(())
}

/// The mirror of this name.
fn mirror<'s>(
    host: &SvmHost,
    state: &'s State,
    name: &str,
) -> Result<&'s state::SvmMirror, CommandError> {
    match state.mirror(name) {
        Some(mirror) => Ok(mirror),
        None if state.has_volume(name) => Err(CommandError::about(name, "unit is not a mirror")),
        None => Err(not_set_up(host, name)),
    }
}

/// The submirror that a command names.
fn submirror<'s>(
    host: &SvmHost,
    state: &'s State,
    of: &SubmirrorArgs,
) -> Result<&'s state::Submirror, CommandError> {
    let mirror = mirror(host, state, &of.mirror)?;
    let found = mirror.submirrors.iter().find(|s| s.name == of.submirror);
    found.ok_or_else(|| {
        let what = format!("can't find submirror {} in mirror", of.submirror);
        CommandError::about(of.mirror.as_str(), what)
    })
}

/// One that is not Okay is taken out by force only: its errors would be forgotten.
fn sound(of: &SubmirrorArgs, found: &state::Submirror) -> Result<(), CommandError> {
    let erred = [SubmirrorState::Erred, SubmirrorState::LastErred, SubmirrorState::Unavailable];
    if erred.contains(&found.state) && !of.force {
        let what = format!("submirror {} has erred components (-f overrides)", of.submirror);
        return Err(CommandError::about(of.mirror.as_str(), what));
    }
    Ok(())
}

/// Detaches a submirror, or takes it offline.
pub fn take_out(
    host: &mut SvmHost,
    of: &SubmirrorArgs,
    (request, done): (fn(Leg) -> Request, &str),
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let state = host.state()?;
    sound(of, submirror(host, &state, of)?)?;
    host.ask(request(Leg::of(&of.mirror, &of.submirror)))?;
    writeln!(out, "{}: submirror {} is {done}", of.mirror, of.submirror)?;
    Ok(())
}

pub fn online(host: &mut SvmHost, of: &SubmirrorArgs, out: &mut dyn Write) -> Result<(), Stop> {
    let state = host.state()?;
    let found = submirror(host, &state, of)?;
    if found.state == SubmirrorState::Okay {
        let what = format!("submirror {} is not offline", of.submirror);
        return Err(CommandError::about(of.mirror.as_str(), what).into());
    }
    host.ask(Request::Online(Leg::of(&of.mirror, &of.submirror)))?;
    writeln!(out, "{}: submirror {} is onlined", of.mirror, of.submirror)?;
    Ok(())
}

pub fn replace(host: &mut SvmHost, replace: &Metareplace, out: &mut dyn Write) -> Result<(), Stop> {
    let state = host.state()?;
    let (name, old) = (&replace.mirror, &host.shown(&replace.old));
    let mirror = mirror(host, &state, name)?;
    let Some(found) = state.submirror_over(mirror, old) else {
        let what = format!("{old}: can't find component in unit");
        return Err(CommandError::about(name, what).into());
    };
    match &replace.new {
        // A host fills memory again by itself: then there is nothing left to enable.
        None if matches!(found.state, SubmirrorState::Okay | SubmirrorState::Resyncing) => {}
        new => {
            let (name, leg, with) = (name.clone(), old.clone(), new.clone());
            host.ask(Request::Replace(Replace { name, leg, with, ..Replace::default() }))?;
        }
    }
    match &replace.new {
        None => writeln!(out, "{name}: device {old} is enabled")?,
        Some(new) => writeln!(out, "{name}: device {old} is replaced with {new}")?,
    }
    Ok(())
}

/// Whether all could be done.
pub fn sync(host: &mut SvmHost, sync: &Sync, command: &str) -> Result<bool, Stop> {
    let state = host.state()?;
    let all: Vec<String> = {
        let mut mirrors: Vec<&state::SvmMirror> =
            state.mirrors.iter().filter(|m| m.pass > 0).collect();
        mirrors.sort_by_key(|mirror| mirror.pass);
        mirrors.into_iter().map(|mirror| mirror.name.clone()).collect()
    };
    let (names, stop) = match sync {
        Sync::All => (&all, false),
        Sync::Start(names) => (names, false),
        Sync::Stop(names) => (names, true),
    };
    let mut well = true;
    for name in names {
        let one = mirror(host, &state, name).map(drop);
        let request = match stop {
            true => Request::CancelResync(NameRequest::of(name)),
            false => Request::Resync(Resync { name: name.clone(), rate: None, wait: false }),
        };
        let one = one.and_then(|()| host.ask(request));
        if let Err(command_error) = one {
            report(command, &command_error);
            well = false;
        }
    }
    Ok(well)
}

pub fn param(host: &mut SvmHost, param: &Param, out: &mut dyn Write) -> Result<(), Stop> {
    let state = host.state()?;
    let name = &param.name;
    if state.concat(name).is_some() && param.changes.is_empty() {
        writeln!(out, "{name}: Concat/Stripe current parameters are:\n    Hot spare pool: none")?;
        return Ok(());
    }
    let mirror = mirror(host, &state, name)?;
    match param.changes.is_empty() {
        true => write!(out, "{}", forms::params(mirror))?,
        false => {
            let Changes { read, write, pass } = &param.changes;
            host.ask(Request::Set(Set {
                name: name.clone(),
                read: read.as_ref().map(|read| read.name().to_owned()),
                write: write.as_ref().map(|write| write.name().to_owned()),
                pass: *pass,
            }))?;
        }
    }
    Ok(())
}

/// Whether all could be cleared.
pub fn clear(
    host: &mut SvmHost,
    clear: &Clear,
    command: &str,
    out: &mut dyn Write,
) -> Result<bool, Stop> {
    let state = host.state()?;
    let names = match &clear.which {
        ClearTarget::These(names) => names.clone(),
        ClearTarget::WithAllUnder(names) => {
            names.iter().flat_map(|n| with_all_under(&state, n)).collect()
        }
        ClearTarget::All => {
            let volumes = state.mirrors.iter().map(|m| &m.name);
            let volumes = volumes.chain(state.concats.iter().map(|c| &c.name));
            let tops = volumes.filter(|name| state.parent(name).is_none());
            tops.flat_map(|name| with_all_under(&state, name)).collect()
        }
    };
    let mut well = true;
    for name in &names {
        match clear_one(host, name, clear.force) {
            Ok(what) => writeln!(out, "{name}: {what} is cleared")?,
            Err(command_error) => {
                report(command, &command_error);
                well = false;
            }
        }
    }
    Ok(well)
}

/// A volume, and then the volumes that it is made of: in the order in which they can be cleared.
fn with_all_under(state: &State, name: &str) -> Vec<String> {
    let mut found = vec![name.to_owned()];
    let mut at = 0;
    while let Some(name) = found.get(at).cloned() {
        for part in state.parts(&name).into_iter().flatten() {
            if state.has_volume(part) && !found.iter().any(|known| known == part) {
                found.push(part.to_owned());
            }
        }
        at += 1;
    }
    found
}

fn clear_one(host: &mut SvmHost, name: &str, force: bool) -> Result<&'static str, CommandError> {
    let state = host.state()?;
    if !state.has_volume(name) {
        return Err(not_set_up(host, name));
    }
    if let Some(parent) = state.parent(name) {
        return Err(CommandError::about(name, format!("metadevice in use: by {parent}")));
    }
    if let Some(mirror) = state.mirror(name) {
        let sound = mirror.submirrors.iter().all(|s| s.state == SubmirrorState::Okay);
        if !sound && !force {
            let what = "a submirror is not Okay: it would not be known any more what it lacks \
                        (-f overrides)";
            return Err(CommandError::about(name, what));
        }
    }
    // The data of a mirror stays on its submirrors.
    let (keep_data, name) = (state.mirror(name).is_some(), name.to_owned());
    host.ask(Request::Destroy(Destroy { name, keep_data, recursive: false }))?;
    Ok(if keep_data { "Mirror" } else { "Concat/Stripe" })
}

pub fn ramdisk(host: &mut SvmHost, ramdisk: &Ramdisk, out: &mut dyn Write) -> Result<(), Stop> {
    let state = host.state()?;
    match ramdisk {
        Ramdisk::List => write!(out, "{}", forms::ramdisks(&state, &host.ramdisk_folder()))?,
        Ramdisk::Add { name, bytes } => {
            if state.devices.iter().any(|device| device.ram_disk.as_ref() == Some(name)) {
                let what = "is there already: a host makes its RAM disks again when it starts, \
                            and fills them by itself";
                return Err(CommandError::about(name, what).into());
            }
            let disk = CreateRamDisk { name: name.clone(), bytes: *bytes };
            host.ask(Request::CreateRamDisk(disk))?;
            writeln!(out, "{}/{name}", host.ramdisk_folder())?;
        }
        Ramdisk::Delete { name } => {
            host.ask(Request::DeleteRamDisk(NameRequest::of(name)))?;
        }
    }
    Ok(())
}

/// Gives a mirror a hot spare, or says whether it could have it.
fn add_spare(host: &SvmHost, mirror: &str, spare: &str, dry_run: bool) -> Result<(), CommandError> {
    let (name, component) = (mirror.to_owned(), spare.to_owned());
    let spare = NewComponent { name, component, spare: true, dry_run, ..NewComponent::default() };
    host.ask(Request::Add(spare))
}

/// Refuses hot spares of which a mirror could not have each.
fn check_spares(
    host: &SvmHost,
    of: &state::SvmMirror,
    devices: &[String],
) -> Result<(), CommandError> {
    let (had, more) = (of.spares.len(), devices.len());
    if had + more > SPARES_MAX {
        let what = format!("has {had} hot spares, and at most {SPARES_MAX}");
        return Err(CommandError::about(of.name.as_str(), what));
    }
    for (n, device) in devices.iter().enumerate() {
        if devices[..n].contains(device) {
            return Err(CommandError::about(device.as_str(), "is given twice"));
        }
        add_spare(host, &of.name, device, true)?;
    }
    Ok(())
}

pub fn spares(host: &mut SvmHost, spares: &Spares, out: &mut dyn Write) -> Result<(), Stop> {
    let state = host.state()?;
    match spares {
        Spares::Show(names) => {
            let mirrors: Vec<&state::SvmMirror> = match names.is_empty() {
                true => state.mirrors.iter().collect(),
                false => {
                    let named = names.iter().map(|name| mirror(host, &state, name));
                    named.collect::<Result<_, _>>()?
                }
            };
            if mirrors.is_empty() {
                return Err(CommandError::of("no hotspare pools found: there is no mirror").into());
            }
            write!(out, "{}", forms::pools(&state, &mirrors))?;
        }
        Spares::Add(pool, devices) => {
            let name = match (pool, &state.mirrors[..]) {
                (Pool::Of(name), _) => mirror(host, &state, name)?.name.clone(),
                (Pool::All, [only]) => only.name.clone(),
                (Pool::All, _) => {
                    let what = "a hot spare belongs to one mirror: name it";
                    return Err(CommandError::about("all", what).into());
                }
            };
            // All of them, or none.
            check_spares(host, mirror(host, &state, &name)?, devices)?;
            for device in devices {
                add_spare(host, &name, device, false)?;
            }
            match devices.len() {
                1 => writeln!(out, "{name}: Hotspare is added")?,
                _ => writeln!(out, "{name}: Hotspares are added")?,
            }
        }
        Spares::Delete(pool, devices) => {
            let mut owners = Vec::new();
            for device in devices {
                let name = match pool {
                    Pool::Of(name) => mirror(host, &state, name)?.name.clone(),
                    Pool::All => {
                        let has = |m: &&state::SvmMirror| m.spares.contains(device);
                        let owner = state.mirrors.iter().find(has).map(|m| m.name.clone());
                        let none = || CommandError::about(device.as_str(), "is nobody's hot spare");
                        owner.ok_or_else(none)?
                    }
                };
                if !mirror(host, &state, &name)?.spares.contains(device) {
                    let what = format!("hotspare {device} does not exist");
                    return Err(CommandError::about(name.as_str(), what).into());
                }
                owners.push(name);
            }
            for (name, device) in owners.iter().zip(devices) {
                host.ask(Request::Remove(Leg::of(name, device)))?;
                writeln!(out, "{name}: Hotspare is deleted")?;
            }
        }
    }
    Ok(())
}
