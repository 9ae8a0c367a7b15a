//! Where a sector lies: zones, cylinders, heads, and the angle at which it passes the head.
//!
//! Sectors are numbered along a track, then along the tracks of a cylinder, then inwards. Each
//! track begins a skew later on the circle than the one before it, so that a transfer that goes
//! on to the next track finds its first sector just after the head has settled there.
//!
//! Angles are nanoseconds of rotation since the index mark; the platter's index passes the head
//! at every multiple of a revolution of the world's clock.

use super::params::HddParams;
use crate::model::ModelError;
use crate::model::parameters::Describe;
use crate::model::units::ms;

#[derive(Debug, Clone, Copy)]
struct Zone {
    first_sector: u64,
    first_cylinder: u32,
    sectors_per_track: u32,
}

/// A track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Track {
    pub cylinder: u32,
    pub head: u32,
}

/// A sector's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectorPosition {
    pub track: Track,
    /// Number within the track.
    pub sector: u32,
    pub sectors_per_track: u32,
    /// Angle of the track's first sector.
    begins_at_ns: u64,
}

/// The layout of the platters.
#[derive(Debug)]
pub(super) struct Geometry {
    revolution_ns: u64,
    heads: u32,
    cylinders: u32,
    track_skew_ns: u64,
    cylinder_skew_ns: u64,
    zones: Vec<Zone>,
}

impl Geometry {
    /// That of a disk whose parameters make sense each.
    pub(super) fn new(p: &HddParams) -> Result<Self, ModelError> {
        let (heads, zones) = (u64::from(p.heads), u64::from(p.zones));
        let revolution_ns = 60_000_000_000 / u64::from(p.rpm);
        let skew = |name, skew_ms| match ms(skew_ms) < revolution_ns {
            true => Ok(ms(skew_ms)),
            false => Err(HddParams::refusal(name, skew_ms, "must be less than a revolution")),
        };
        let track_skew_ns = skew("track_skew_ms", p.track_skew_ms)?;
        let cylinder_skew_ns = skew("cylinder_skew_ms", p.cylinder_skew_ms)?;
        // A cylinder is read in the revolutions of its tracks and the skews between them.
        let cylinder_ns = heads * revolution_ns + (heads - 1) * track_skew_ns + cylinder_skew_ns;
        let per_track: Vec<u64> = (0..zones)
            .map(|z| {
                let inward = if zones == 1 { 0.0 } else { z as f64 / (zones - 1) as f64 };
                let (outer, inner) = (p.sustained_outer_mb_per_s, p.sustained_inner_mb_per_s);
                let bytes_per_ns = (outer + (inner - outer) * inward) / 1e3;
                (bytes_per_ns * cylinder_ns as f64 / (heads * 512) as f64) as u64
            })
            .collect();
        if let Some(bad) = per_track.iter().find(|n| !(1..=1_000_000).contains(*n)) {
            let why = "must give between 1 and 1000000 sectors a track";
            return Err(HddParams::refusal("sustained_*_mb_per_s", bad, why));
        }
        let per_zone_cylinder: u64 = per_track.iter().map(|n| n * heads).sum();
        let cylinders = p.sectors.div_ceil(per_zone_cylinder);
        if !(2..=u64::from(u32::MAX)).contains(&(cylinders * zones)) {
            let why = format!("makes {} cylinders, not 2 to {}", cylinders * zones, u32::MAX);
            return Err(HddParams::refusal("sectors", p.sectors, why));
        }
        let mut first_sector = 0;
        let zones = (0..).zip(&per_track).map(|(z, n)| {
            let zone = Zone {
                first_sector,
                first_cylinder: (z * cylinders) as u32,
                sectors_per_track: *n as u32,
            };
            first_sector += n * heads * cylinders;
            zone
        });
        let zones: Vec<Zone> = zones.collect();
        let cylinders = (cylinders * zones.len() as u64) as u32;
        let heads = heads as u32;
        Ok(Geometry { revolution_ns, heads, cylinders, track_skew_ns, cylinder_skew_ns, zones })
    }

    pub(super) fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Where a sector is. Sectors beyond the capacity but within the last cylinders have places.
    pub(super) fn locate(&self, sector: u64) -> SectorPosition {
        let zone = &self.zones[self.zones.partition_point(|z| z.first_sector <= sector) - 1];
        let per_track = u64::from(zone.sectors_per_track);
        let within = sector - zone.first_sector;
        let track_number = within / per_track;
        let heads = u64::from(self.heads);
        let cylinder = zone.first_cylinder + (track_number / heads) as u32;
        let track = Track { cylinder, head: (track_number % heads) as u32 };
        SectorPosition {
            track,
            sector: (within % per_track) as u32,
            sectors_per_track: zone.sectors_per_track,
            begins_at_ns: self.track_begins_at(track),
        }
    }

    fn track_begins_at(&self, track: Track) -> u64 {
        let per_cylinder = u64::from(self.heads - 1) * self.track_skew_ns + self.cylinder_skew_ns;
        let skew =
            u64::from(track.cylinder) * per_cylinder + u64::from(track.head) * self.track_skew_ns;
        skew % self.revolution_ns
    }

    /// Nanoseconds of rotation from the beginning of a track to the beginning of its sector `n`
    /// (or to its end, for the number of sectors).
    pub(super) fn rotation_to(&self, place: &SectorPosition, n: u32) -> u64 {
        u64::from(n) * self.revolution_ns / u64::from(place.sectors_per_track)
    }

    /// Sectors of the track of `place` that have wholly passed after `ns` of rotation from the
    /// track's beginning.
    pub(super) fn passed(&self, place: &SectorPosition, ns: u64) -> u32 {
        // The last n for which rotation_to(n) <= ns.
        let per_track = u64::from(place.sectors_per_track);
        let estimate = (ns * per_track).div_ceil(self.revolution_ns).min(per_track) as u32;
        (0..=estimate).rev().find(|n| self.rotation_to(place, *n) <= ns).unwrap_or(0)
    }

    /// When, not before `at_ns`, the beginning of `place` is under its head.
    pub(super) fn passes(&self, place: &SectorPosition, at_ns: u64) -> u64 {
        let angle =
            (place.begins_at_ns + self.rotation_to(place, place.sector)) % self.revolution_ns;
        let now = at_ns % self.revolution_ns;
        at_ns + (angle + self.revolution_ns - now) % self.revolution_ns
    }
}
