//! A volume that is assembled for one command.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use steadfast_stack::protocol::{Answer, Request, Set};
use steadfast_volume::{
    AssemblyReport, LegState, LegStatus, Mirror, NewLeg, Policies, ReadPolicy, ResyncThrottle,
};

use steadfast_setup::path::forget_occupant;

use super::cli::VolumeCommand;
use super::create::new_leg;
use super::{KeptVolume, open, progress, request, show};
use crate::commands::serve::said;
use crate::{Usage, terminal};

/// A mirror of the members that were named.
pub struct OwnVolume {
    found: AssemblyReport,
    mirror: Mirror,
    /// The device that becomes a leg.
    new: Option<NewLeg>,
    /// Regions that no leg could give.
    unreadable: u64,
}

impl OwnVolume {
    /// Assembles it. What was given is checked before.
    pub fn open(command: &VolumeCommand, request: &Request) -> Result<OwnVolume> {
        let Some(members) = request::members_of(command) else {
            usage!("this is for volumes of a running host");
        };
        let leg = |path: &PathBuf, force| new_leg(members, path, force);
        let mut new = None;
        match (command, request) {
            (VolumeCommand::Add { leg: path, volatile, partial, force, .. }, _) => {
                let (volatile, partial) = (*volatile, *partial);
                new = Some(NewLeg { volatile, partial, ..leg(path, *force)? });
            }
            (VolumeCommand::Replace { leg: of, with, force, .. }, _) => {
                place(of)?;
                new = with.as_ref().map(|path| leg(path, *force)).transpose()?;
            }
            (_, Request::Offline(of) | Request::Online(of)) => drop(place(&of.leg)?),
            (_, Request::Set(set)) => drop(set.policies(Policies::default()).map_err(said)?),
            _ => {}
        }
        let (found, outer) = open::assembled(members, matches!(request, Request::Resync(_)))?;
        let volume = open::chosen(members, &found, outer)?;
        let Some(mirror) = volume.mirror else {
            usage!(
                "'{}' is a {}: this is for mirrors; one inside of it is named by --volume NAME",
                volume.name,
                volume.kind.name()
            );
        };
        Ok(OwnVolume { found, mirror, new, unreadable: 0 })
    }

    /// Puts the new device into a leg's place, or its own again.
    fn replace(&self, slot: usize, lose_data: bool) -> Result<Option<u64>> {
        let new = self.new.as_ref();
        let lost = match lose_data {
            false => self.mirror.replace(slot, new).map(|()| None)?,
            true => Some(self.mirror.replace_and_lose(slot, new)?),
        };
        new.map_or(Ok(()), |new| forget_occupant(&new.device))?;
        Ok(lost)
    }

    fn set(&self, set: &Set) -> Result<()> {
        if set.read.is_some() {
            let legs = self.mirror.status().legs;
            let has = |place| legs.iter().any(|leg| leg.slot == place);
            refuse_nobody(set.policies(Policies::default()).map_err(said)?, has)?;
        }
        let policies = set.policies(self.mirror.policies()).map_err(said)?;
        Ok(self.mirror.set_policies(policies)?)
    }
}

impl KeptVolume for OwnVolume {
    fn name(&self) -> String {
        self.mirror.name().to_owned()
    }

    fn own_name(&self) -> Result<String> {
        Ok(self.name())
    }

    fn call(&mut self, request: &Request, _out: &mut dyn Write) -> Result<Answer> {
        let mut answer = Answer::default();
        let mirror = &self.mirror;
        match request {
            Request::Add(add) => {
                let Some(new) = &self.new else { bail!("no device was opened") };
                match add.spare {
                    true => mirror.add_spare(new)?,
                    false => drop(mirror.attach(new)?),
                }
                forget_occupant(&new.device)?;
            }
            // A spare has no place.
            Request::Remove(of)
                if of.leg.parse::<usize>().is_err() && mirror.status().spares.contains(&of.leg) =>
            {
                if !mirror.remove_spare(&of.leg)? {
                    let what =
                        "was not reached, and still has the spare's label; it is not trusted";
                    terminal::note(&format!("note: {}: {what}", of.leg));
                }
            }
            Request::Remove(of) if of.lose_data => {
                answer.bytes = Some(mirror.detach_and_lose(place(&of.leg)?)?);
            }
            Request::Remove(of) => mirror.detach(place(&of.leg)?)?,
            Request::Replace(of) => {
                let slot = place(&of.leg)?;
                let was = mirror.status().legs.iter().any(|l| l.slot == slot && l.volatile);
                if let Some(new) = &mut self.new {
                    new.volatile = of.volatile || was && !of.durable;
                }
                answer.bytes = self.replace(slot, of.lose_data)?;
            }
            Request::Offline(of) => mirror.offline(place(&of.leg)?)?,
            Request::Online(of) => mirror.online(place(&of.leg)?, None)?,
            Request::Set(set) => self.set(set)?,
            Request::Grow(grow) => answer.bytes = Some(mirror.grow(grow.size)?),
            Request::Resync(resync) => {
                let throttle = ResyncThrottle { bytes_per_second: resync.rate, regions: None };
                let before = mirror.status();
                let copied = progress::reported(mirror, || mirror.resync(throttle))?;
                if let Some(what) = mirror.status().failed_since(&before) {
                    bail!("'{}': {what}", mirror.name());
                }
                answer.bytes = Some(copied.bytes);
                self.unreadable = copied.unreadable;
            }
            Request::Scrub(scrub) => {
                // What legs lack is no difference: first they get it.
                mirror.resync(ResyncThrottle::default())?;
                let throttle = ResyncThrottle { bytes_per_second: scrub.rate, regions: None };
                answer.scrubbed = Some(mirror.scrub(scrub.repair, throttle)?);
            }
            _ => usage!("this is for a running host"),
        }
        Ok(answer)
    }

    fn close(&mut self) -> Result<()> {
        self.found.close()?;
        open::end_if_signalled();
        Ok(())
    }

    fn show(&mut self, out: &mut dyn Write) -> Result<bool> {
        show::status(&self.found, false, out)?;
        if self.unreadable > 0 {
            let regions = terminal::counted(self.unreadable, "region");
            bail!("'{}': {regions} could not be read from any leg", self.mirror.name());
        }
        Ok(!self.mirror.status().legs.iter().any(still_lacks))
    }
}

/// A leg's place.
fn place(leg: &str) -> Result<usize> {
    let what = "a leg is named by its place, a spare by its name, as 'volume status' shows them";
    leg.parse().map_err(|_| Usage(format!("--leg {leg}: {what}")).into())
}

/// Refuses to prefer a leg that there is not.
pub fn refuse_nobody(policies: Policies, has: impl Fn(usize) -> bool) -> Result<()> {
    match policies.read {
        ReadPolicy::Preferred(place) if !has(place) => {
            usage!("leg {place} cannot be preferred: there is none in this place")
        }
        _ => Ok(()),
    }
}

/// Whether a leg that is there lacks something that nobody wants it to lack.
fn still_lacks(leg: &LegStatus) -> bool {
    let absent = matches!(leg.state, LegState::Offline | LegState::Unavailable);
    !absent && (leg.state != LegState::Okay || leg.lacking_bytes > 0)
}
