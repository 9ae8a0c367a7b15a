//! The status of a mirror.

use uuid::Uuid;

use super::Mirror;
use super::leg::Spare;
use super::leg::{Counters, bit};
use super::policy::Policies;
use super::state::State;
use crate::ondisk::label::MemberState;
use crate::ondisk::map::RegionState;

/// The state of a leg, in the words of the Solaris Volume Manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegState {
    /// It holds everything, durably if it is not volatile.
    Okay,
    /// It is being given what it lacks.
    Resyncing,
    /// It failed or left, and another leg has what it had.
    NeedsMaintenance,
    /// It failed, and no other leg has all that it has: it is still used.
    LastErred,
    /// Taken offline by a person.
    Offline,
    /// It is not there. Of a volatile leg this is no alarm.
    Unavailable,
}

impl LegState {
    /// As `metastat` writes it.
    pub fn name(self) -> &'static str {
        match self {
            LegState::Okay => "Okay",
            LegState::Resyncing => "Resyncing",
            LegState::NeedsMaintenance => "Needs maintenance",
            LegState::LastErred => "Last Erred",
            LegState::Offline => "Offline",
            LegState::Unavailable => "Unavailable",
        }
    }
}

/// A leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegStatus {
    /// Its place.
    pub slot: usize,
    /// Its UUID.
    pub uuid: Uuid,
    /// The device's name, as it was last seen.
    pub name: String,
    /// Its state.
    pub state: LegState,
    /// Its contents do not count as durable.
    pub volatile: bool,
    /// All that was flushed is on it: after a power cut now it could do without the others. That
    /// may be so though it is given something (see [`lacking_bytes`](Self::lacking_bytes)), where a
    /// write has failed on all legs, or a power cut has left them different.
    pub holds_flushed: bool,
    /// Bytes of the volume that it lacks and is to be given; 0 of a partial leg.
    pub lacking_bytes: u64,
    /// Of a partial leg: bytes of the volume that it holds now.
    pub held_bytes: Option<u64>,
    /// Bytes of data that it has room for.
    pub room: u64,
    /// The last error, if it failed.
    pub error: Option<String>,
    /// What it was asked for since the assembly.
    pub counters: Counters,
    /// Mean time of a read, in nanoseconds; 0: none yet.
    pub read_latency_ns: u64,
}

/// A mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorStatus {
    /// UUID.
    pub uuid: Uuid,
    /// Name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Bytes of a region.
    pub region_bytes: u64,
    /// Regions never written, being filled, dirty, clean.
    pub regions: [u32; 4],
    /// Regions have checksums.
    pub checksums: bool,
    /// Bytes of regions that were written and of which a checksum is not known: what is read there
    /// is not verified, until they are written, resynced, or scrubbed with a repair.
    pub unchecked_bytes: u64,
    /// Policies.
    pub policies: Policies,
    /// Generation of the labels.
    pub generation: u64,
    /// Legs, by their place.
    pub legs: Vec<LegStatus>,
    /// Names of the spares.
    pub spares: Vec<String>,
    /// Why nothing can be written any more.
    pub failed: Option<String>,
}

impl MirrorStatus {
    /// Whether every durable leg is Okay.
    pub fn is_whole(&self) -> bool {
        let sound = |leg: &LegStatus| leg.volatile || leg.state == LegState::Okay;
        self.failed.is_none() && self.legs.iter().all(sound)
    }

    /// A leg that was being given what it lacks at an earlier time, and has failed since: which,
    /// and why.
    pub fn failed_since(&self, earlier: &MirrorStatus) -> Option<String> {
        let was_given = |leg: &&LegStatus| {
            let given = |l: &LegStatus| l.uuid == leg.uuid && l.state == LegState::Resyncing;
            leg.state == LegState::NeedsMaintenance && earlier.legs.iter().any(given)
        };
        let leg = self.legs.iter().find(was_given)?;
        let why = leg.error.as_deref().unwrap_or("it failed");
        Some(format!("leg {} ({}) did not get all that it lacks: {why}", leg.slot, leg.name))
    }
}

/// What is known of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionStatus {
    /// It was never written, or was discarded: it reads as zeros.
    pub unwritten: bool,
    /// Places of legs in use that hold it, as bits.
    pub legs: u8,
    /// The checksum of each block is known, or on the legs.
    pub checked: bool,
    /// It would be so after a power cut.
    pub checked_durably: bool,
}

impl State {
    fn unchecked_bytes(&self) -> u64 {
        let Some(known) = &self.checksums else { return 0 };
        let unchecked =
            |r: &u32| self.regions.get(*r).state != RegionState::Unwritten && !known.covers_all(*r);
        (0..self.regions.count()).filter(unchecked).map(|r| self.regions.bytes_of(r).1).sum()
    }
}

impl Mirror {
    /// What is known of the region that a byte of the volume is in; `None` beyond its end.
    pub fn region_at(&self, offset: u64) -> Option<RegionStatus> {
        let state = self.0.state.lock();
        let region = state.regions.of(offset, 1).start;
        if region >= state.regions.count() {
            return None;
        }
        let now = state.regions.get(region);
        Some(RegionStatus {
            unwritten: state.regions.is_blank(region),
            legs: state.legs.active() & !state.regions.lacking(region),
            checked: state.checksums.as_ref().is_some_and(|known| known.covers_all(region)),
            checked_durably: now.summed,
        })
    }

    /// The state of now.
    pub fn status(&self) -> MirrorStatus {
        let state = self.0.state.lock();
        let legs = state.legs.iter().enumerate();
        let legs = legs.filter_map(|(slot, leg)| {
            let leg = leg.as_ref()?;
            let mut counters = leg.counters;
            self.0.lanes.count(slot, leg.uuid, &mut counters);
            let lacking = state.regions.lacking_bytes(bit(slot));
            let lacking_bytes = if leg.partial { 0 } else { lacking };
            let of = match leg.state {
                MemberState::Offline => LegState::Offline,
                _ if leg.device.is_none() => LegState::Unavailable,
                MemberState::Active if leg.erred.is_some() => LegState::LastErred,
                MemberState::Active if lacking_bytes > 0 => LegState::Resyncing,
                // Without it the power must not go yet.
                MemberState::Active if !leg.volatile && !state.regions.is_whole(bit(slot)) => {
                    LegState::Resyncing
                }
                MemberState::Active => LegState::Okay,
                _ => LegState::NeedsMaintenance,
            };
            Some(LegStatus {
                slot,
                uuid: leg.uuid,
                name: leg.name.clone(),
                state: of,
                volatile: leg.volatile,
                holds_flushed: leg.is_active()
                    && !leg.volatile
                    && state.regions.holds_flushed(bit(slot)),
                lacking_bytes,
                held_bytes: leg.partial.then(|| state.regions.held_bytes(bit(slot))),
                room: leg.room,
                error: leg.erred.clone(),
                counters,
                read_latency_ns: leg.measured.latency_ns,
            })
        });
        MirrorStatus {
            uuid: self.0.volume,
            name: self.0.name.clone(),
            size: state.regions.size(),
            region_bytes: state.regions.region_bytes(),
            regions: state.regions.tally(),
            checksums: state.checksums.is_some(),
            unchecked_bytes: state.unchecked_bytes(),
            policies: state.policies,
            generation: state.generation,
            legs: legs.collect(),
            spares: state.spares.iter().map(|s: &Spare| s.name.clone()).collect(),
            failed: state.failed.as_ref().map(ToString::to_string),
        }
    }
}
