//! A disk: seek, rotation, zones, a command queue, a read cache, a write cache.
//!
//! # Where the figures of the preset come from
//!
//! Seagate, *Cheetah 15K.6 SAS Product Manual*, 100466193 rev. B, September 2008, for the
//! ST3146356SS: 15,000 rpm, average latency 2.0 ms, sustained 112 to 171 MB/s, link 300 MB/s
//! (sections 1 and 4.2.3); 146.8 GB = 286,749,488 sectors, 16 MB of buffer; seek (section 4.2.1,
//! without controller overhead) average 3.4 ms for reads and 3.9 ms for writes, single track
//! 0.2 and 0.44 ms.
//!
//! What the manual does not say, and how it was set:
//! * full stroke, 6.6 ms for reads and 7.4 ms for writes: twice the average, as in the tables of
//!   sibling drives (Savvio 10K.4: average 3.8 and 4.4, full stroke 7.8 and 8.2);
//! * controller overhead 0.2 ms: the difference between the two halves of the access-time tables
//!   of these manuals, with and without overhead (Savvio 10K.4: 4.0 and 3.8 ms). A queued
//!   command's overhead passes while the arm is busy with another;
//! * 3 heads: an assumption, about 50 GB a surface;
//! * skews of 0.48 ms: the settling for a write, 0.44 ms, and a tenth for safety. The number of
//!   sectors in a track follows from the sustained rates and the skews;
//! * the split of the buffer: half for reads, in 16 segments, half for writes. Older manuals of
//!   the family describe a segmented buffer and leave the number to the firmware;
//! * seeks end up to 0.2 ms sooner or later than the curve says: an assumption, half of what a
//!   write needs to settle. Without any, the drive's ordering would be clairvoyant: every write to
//!   a near track would be chosen to arrive just in time, and always would;
//! * a queue of 64, which is what Linux gives a SAS disk, although the drive could hold more;
//! * an age limit of 500 ms: twice the time of a full queue of 256 KiB accesses (64 x 4 ms), so
//!   that it cuts off starvation and not the policy's gain.
//!
//! # Drives that were measured
//!
//! What a data sheet does not say can be given as it was measured: zones with their skews, spares
//! and slipped sectors, seek times by distance, the switch of a head apart from a seek, overheads
//! by the kind of command and the one before it, water marks, how far the drive reads on. With
//! such parameters the model's times were compared with those of real drives: docs/validation.md.
//! Where each rule is from stands with its parameter; those of the buffer and the link follow
//! DiskSim's disk module (Bucy, Schindler, Schlosser and Ganger, "The DiskSim Simulation
//! Environment, version 4.0", CMU-PDL-08-101, 2008, section 3.6), but for two: the reselection of
//! the host overlaps the end of a read, and a write's `write_start_ms` begins when its first
//! sectors are there.
//!
//! # What the model leaves out
//!
//! Sectors remapped to spares elsewhere; thermal recalibration; read hits on what has been written
//! out.

mod access;
mod drive;
mod geometry;
mod mechanics;
mod overhead;
mod params;
mod read_cache;
mod seek;
mod write_buffer;
mod zone;

use steadfast_block::DeviceInfo;

use super::engine::Engine;
use super::parameters::{Describe, ModelKind, ParameterTable};
use super::units::sectors;
use super::{ModelError, ModelParams};
use drive::Drive;
use mechanics::Mechanics;
pub use params::{
    CacheAtReset, HddParams, LookAheadUntil, Overheads, QueuePolicy, SurfaceOrder, WriteCacheMode,
    WriteOverheads,
};
pub use zone::ZoneParams;

/// A modelled disk.
pub type Hdd = Engine<Drive>;

impl Describe for HddParams {
    const KIND: ModelKind = ModelKind {
        name: "hdd",
        title: "disk drive",
        preset: "Seagate Cheetah 15K.6, 146 GB",
        physics: "seek curve through three points, rotation from absolute time, zones and skews, \
                  or all of these as measured; a link that takes sector by sector, command queue \
                  by shortest positioning time with an age limit, segmented read cache, write \
                  cache off, on or lying",
        parameters: Self::PARAMETERS,
        is_memory: false,
        default: || ModelParams::Hdd(HddParams::default()),
        test_disk_bytes_min: Some(1 << 30),
    };

    fn info(&self, name: &str) -> DeviceInfo {
        let mut info = DeviceInfo::new(name, self.description.clone(), sectors(self.sectors));
        info.rotational = true;
        info.volatile_cache = self.write_cache != WriteCacheMode::Off;
        info
    }

    fn description(&self) -> String {
        let cache = match self.write_cache {
            WriteCacheMode::Off => "write cache off",
            WriteCacheMode::On => "write cache on",
            WriteCacheMode::Lying => "write cache on, flushes ignored",
        };
        let reset = match self.cache_at_reset {
            CacheAtReset::Kept => "",
            CacheAtReset::Lost => ", forgets its cache at a reset",
        };
        format!("{}, {cache}{reset}", self.description)
    }

    fn check_together(&self) -> Result<(), ModelError> {
        if self.read_cache_kb < self.read_segments {
            let why = format!("must be at least read_segments, {}", self.read_segments);
            return Err(Self::refusal("read_cache_kb", self.read_cache_kb, why));
        }
        let shortest = self.seek_read_track_to_track_ms.min(self.seek_write_track_to_track_ms);
        if self.seek_variation_ms > shortest {
            let why = format!("must be at most the shortest seek, {shortest} ms");
            return Err(Self::refusal("seek_variation_ms", self.seek_variation_ms, why));
        }
        let o = &self.overheads;
        let apart = o.write_apart.map(|w| [w.before, w.data, w.end]).unwrap_or_default();
        let given = [
            o.read_hit,
            o.read_hit_after_write,
            o.read_miss,
            o.read_miss_after_write,
            o.write,
            o.write_after_write,
        ];
        let all = given.into_iter().flatten().chain([o.read_end, o.write_data, o.write_end]);
        if let Some(bad) = all.chain(apart).find(|ms| !(0.0..=60e3).contains(ms)) {
            return Err(Self::refusal("overheads", bad, "must be between 0 and 60000"));
        }
        Mechanics::new(self).map(drop)
    }

    fn warnings(&self) -> Vec<String> {
        Mechanics::new(self).map(|m| m.lost_revolutions(self.heads)).unwrap_or_default()
    }

    fn test_disk(self, bytes: u64) -> Self {
        HddParams { sectors: bytes / 512, write_cache: WriteCacheMode::On, ..self }
    }

    /// Capacity shrinks as the files do; tracks, rotation and the times for a third of the stroke
    /// and all of it stay. So the arm travels between the files the same share of the stroke, in
    /// the same time, as at the full size; on a disk of the full capacity the smaller files would
    /// lie closer together and seeks would be too short.
    fn scaled(&self, part: u64, whole: u64) -> Self {
        let sectors = u128::from(self.sectors) * u128::from(part) / u128::from(whole.max(1));
        // OK to cast: at most what it was.
        let sectors = (sectors as u64 / 8 * 8).clamp(8, self.sectors.max(8));
        let share = part as f64 / whole.max(1) as f64;
        let (zone_table, seek_table) = scaled_tables(self, share.min(1.0));
        let held: u64 = zone_table.iter().map(|zone| zone.sectors(self.heads)).sum();
        let sectors = if zone_table.is_empty() { sectors } else { sectors.min(held) };
        HddParams { sectors, zone_table, seek_table, ..self.clone() }
    }

    fn forgets_at_reset(&self) -> bool {
        self.cache_at_reset == CacheAtReset::Lost
    }

    fn lying_cache_bytes(&self) -> Option<u64> {
        (self.write_cache == WriteCacheMode::Lying).then(|| u64::from(self.write_buffer_kb) << 10)
    }
}

/// Measured zones with fewer cylinders each, and seek times over as much shorter distances. Slipped
/// sectors have no place in it.
fn scaled_tables(p: &HddParams, share: f64) -> (Vec<ZoneParams>, Vec<(u32, f64)>) {
    // OK to cast: less than it was.
    let less = |n: u32| (f64::from(n) * share).ceil() as u32;
    let mut first_cylinder = 0;
    let zone = |z: &ZoneParams| {
        let cylinders = less(z.cylinders).max(1);
        first_cylinder += cylinders;
        let first_cylinder = first_cylinder - cylinders;
        let spares = if z.spare_region == 0 { 0 } else { z.spares };
        ZoneParams { first_cylinder, cylinders, spares, unused: 0, slipped: vec![], ..z.clone() }
    };
    let zones = p.zone_table.iter().map(zone).collect();
    let mut seeks: Vec<(u32, f64)> =
        p.seek_table.iter().map(|(d, ms)| (less(*d).max(1), *ms)).collect();
    if !p.zone_table.is_empty() {
        // Of several distances that have become one, the longest.
        seeks.reverse();
        seeks.dedup_by_key(|(d, _)| *d);
        seeks.reverse();
    } else {
        seeks.clone_from(&p.seek_table);
    }
    (zones, seeks)
}

#[cfg(test)]
mod tests;
