//! Where a sector lies: zones, cylinders, heads, and the angle at which it passes the head.
//!
//! Sectors are numbered along a track, then along the tracks of a cylinder, then inwards. Each
//! track begins a skew later on the circle than the one before it, so that a transfer that goes
//! on to the next track finds its first sector just after the head has settled there.
//!
//! Angles are nanoseconds of rotation since the index mark; the platter's index passes the head
//! at every multiple of a revolution of the world's clock.

use super::params::{HddParams, SurfaceOrder};
use super::zone::Hole;
use crate::model::ModelError;
use crate::model::parameters::Describe;
use crate::model::units::ms;

/// Cylinders of a disk, regions of spares and slipped runs of a zone, at most: far beyond any
/// drive, and soon looked through.
const MOST: u64 = 1 << 22;

#[derive(Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u32,
    sectors_per_track: u32,
    /// Angle of the zone's first track.
    begins_at_ns: u64,
    track_skew_ns: u64,
    /// From a cylinder's first track to that of the next.
    cylinder_turn_ns: u64,
    passed: Vec<Hole>,
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
    /// Sectors of data from here on that follow each other on the track, at least 1.
    pub run: u32,
    /// Angle of the track's first sector.
    begins_at_ns: u64,
}

/// The layout of the platters.
#[derive(Debug)]
pub(super) struct Geometry {
    revolution_ns: u64,
    heads: u32,
    cylinders: u32,
    sectors: u64,
    surface_order: SurfaceOrder,
    zones: Vec<Zone>,
}

impl Geometry {
    /// That of a disk whose parameters make sense each.
    pub(super) fn new(p: &HddParams) -> Result<Self, ModelError> {
        let (zones, cylinders, sectors) = match p.zone_table.is_empty() {
            true => equal_zones(p)?,
            false => measured_zones(p)?,
        };
        if p.sectors > sectors {
            let why = format!("the zones of zone_table hold {sectors}");
            return Err(HddParams::refusal("sectors", p.sectors, why));
        }
        let (revolution_ns, surface_order) = (revolution_ns(p), p.surface_order);
        Ok(Geometry { revolution_ns, heads: p.heads, cylinders, sectors, surface_order, zones })
    }

    pub(super) fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// The least skew from track to track, and from cylinder to cylinder.
    pub(super) fn least_skews_ns(&self) -> (u64, u64) {
        let cylinder = |z: &Zone| z.cylinder_turn_ns - u64::from(self.heads - 1) * z.track_skew_ns;
        let least = |of: &dyn Fn(&Zone) -> u64| self.zones.iter().map(of).min().unwrap_or(0);
        (least(&|z| z.track_skew_ns), least(&cylinder))
    }

    pub(super) fn revolution_ns(&self) -> u64 {
        self.revolution_ns
    }

    /// Where a sector is. Sectors beyond the capacity but within the last cylinders have places;
    /// those beyond these lie where the last one does.
    pub(super) fn locate(&self, sector: u64) -> SectorPosition {
        let sector = sector.min(self.sectors - 1);
        let zone = &self.zones[self.zones.partition_point(|z| z.first_sector <= sector) - 1];
        let per_track = u64::from(zone.sectors_per_track);
        let within = sector - zone.first_sector;
        let holes = zone.passed.partition_point(|hole| hole.from <= within);
        let passed = holes.checked_sub(1).map_or(0, |i| zone.passed[i].passed);
        let until_hole = zone.passed.get(holes).map_or(u64::MAX, |hole| hole.from - within);
        let physical = within + passed;
        let (track_number, on_track) = (physical / per_track, physical % per_track);
        let (inward, head) =
            (track_number / u64::from(self.heads), track_number % u64::from(self.heads));
        // OK to cast: within the zone's cylinders and heads, and a track's sectors.
        let (inward, head) = (inward as u32, head as u32);
        let cylinder = zone.first_cylinder + inward;
        let reversed = match self.surface_order {
            SurfaceOrder::Same => false,
            SurfaceOrder::Alternating => cylinder % 2 == 1,
            SurfaceOrder::AlternatingInZone => inward % 2 == 1,
        };
        let turned =
            u64::from(inward) * zone.cylinder_turn_ns + u64::from(head) * zone.track_skew_ns;
        SectorPosition {
            track: Track { cylinder, head: if reversed { self.heads - 1 - head } else { head } },
            sector: on_track as u32,
            sectors_per_track: zone.sectors_per_track,
            run: (per_track - on_track).min(until_hole) as u32,
            begins_at_ns: (zone.begins_at_ns + turned) % self.revolution_ns,
        }
    }

    /// The first sector of data on a sector's track, and the one after the last.
    pub(super) fn track_of(&self, sector: u64) -> (u64, u64) {
        let here = self.locate(sector);
        let on_it = |s: u64| self.locate(s).track == here.track;
        let most = u64::from(here.sectors_per_track);
        // Between one that cannot be on it any more and this one.
        let (mut off, mut on) = (sector.saturating_sub(most), sector);
        if on_it(off) {
            on = off;
        }
        while off + 1 < on {
            let middle = u64::midpoint(off, on);
            if on_it(middle) { on = middle } else { off = middle }
        }
        let mut end = sector;
        while end < self.sectors && on_it(end) {
            end += u64::from(self.locate(end).run);
        }
        (on, end)
    }

    /// The first sector of data beyond a sector's cylinder.
    pub(super) fn cylinder_end(&self, sector: u64) -> u64 {
        let cylinder = self.locate(sector).track.cylinder;
        let mut end = sector;
        while end < self.sectors && self.locate(end).track.cylinder == cylinder {
            end += u64::from(self.locate(end).run);
        }
        end
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

fn revolution_ns(p: &HddParams) -> u64 {
    60_000_000_000 / u64::from(p.rpm)
}

/// Zones of equal numbers of cylinders, with the rates of a data sheet.
fn equal_zones(p: &HddParams) -> Result<(Vec<Zone>, u32, u64), ModelError> {
    let (heads, zones) = (u64::from(p.heads), u64::from(p.zones));
    let revolution_ns = revolution_ns(p);
    let skew = |name, skew_ms| match ms(skew_ms) < revolution_ns {
        true => Ok(ms(skew_ms)),
        false => Err(HddParams::refusal(name, skew_ms, "must be less than a revolution")),
    };
    let track_skew_ns = skew("track_skew_ms", p.track_skew_ms)?;
    let cylinder_skew_ns = skew("cylinder_skew_ms", p.cylinder_skew_ms)?;
    let cylinder_turn_ns = (heads - 1) * track_skew_ns + cylinder_skew_ns;
    // A cylinder is read in the revolutions of its tracks and the skews between them.
    let cylinder_ns = heads * revolution_ns + cylinder_turn_ns;
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
            begins_at_ns: z * cylinders * cylinder_turn_ns % revolution_ns,
            track_skew_ns,
            cylinder_turn_ns,
            passed: Vec::new(),
        };
        first_sector += n * heads * cylinders;
        zone
    });
    let zones: Vec<Zone> = zones.collect();
    Ok((zones, (cylinders * per_track.len() as u64) as u32, first_sector))
}

/// The zones of `zone_table`.
fn measured_zones(p: &HddParams) -> Result<(Vec<Zone>, u32, u64), ModelError> {
    let refused =
        |i: usize, why: &str| Err(HddParams::refusal("zone_table", format!("zone {}", i + 1), why));
    let revolution = revolution_ns(p) as f64;
    let (mut first_sector, mut cylinders, mut zones) = (0, 0, Vec::new());
    for (i, z) in p.zone_table.iter().enumerate() {
        let end = u64::from(z.first_cylinder) + u64::from(z.cylinders);
        if z.cylinders == 0 || end > MOST || u64::from(z.first_cylinder) < cylinders {
            return refused(i, "must have cylinders of its own, after those of the zone before");
        }
        let per_track = f64::from(z.sectors_per_track);
        if !(1..=1_000_000).contains(&z.sectors_per_track) {
            return refused(i, "must have between 1 and 1000000 sectors a track");
        }
        let angles = [z.track_skew, z.cylinder_skew, z.begins_at];
        if !angles.iter().all(|a| (0.0..per_track).contains(a)) {
            return refused(i, "skews and begins_at must be sectors of one track");
        }
        let regions = z.physical_sectors(p.heads).checked_div(z.spare_region).unwrap_or(1);
        if regions.saturating_mul(z.slipped.len() as u64 + 1) > 16 * MOST {
            return refused(i, "has too many regions of spares and slipped runs");
        }
        let (passed, sectors) = z.layout(p.heads);
        if sectors == 0 {
            return refused(i, "holds no data");
        }
        let ns = |sectors: f64| (sectors / per_track * revolution).round() as u64;
        let [track_skew_ns, cylinder_skew_ns, begins_at_ns] = angles.map(ns);
        zones.push(Zone {
            first_sector,
            first_cylinder: z.first_cylinder,
            sectors_per_track: z.sectors_per_track,
            begins_at_ns,
            track_skew_ns,
            cylinder_turn_ns: u64::from(p.heads - 1) * track_skew_ns + cylinder_skew_ns,
            passed,
        });
        first_sector += sectors;
        cylinders = end;
    }
    // OK to cast: at most MOST.
    Ok((zones, (cylinders as u32).max(2), first_sector))
}
