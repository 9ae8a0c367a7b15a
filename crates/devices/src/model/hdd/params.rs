//! What describes a disk.

use serde::{Deserialize, Serialize};

use super::geometry::Geometry;
use super::mechanics::Mechanics;
use super::seek::SeekCurve;
use crate::model::ModelError;
use crate::model::params::{Checker, Rate};

/// In which order queued commands are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePolicy {
    /// The one whose first sector the head can reach soonest, seek and rotation together
    /// (shortest positioning time first); those that have waited for `queue_age_limit_ms` go
    /// before others. Worthington, Ganger and Patt, "Scheduling algorithms for modern disk drives",
    /// SIGMETRICS 1994.
    #[default]
    Sptf,
    /// As they came.
    Fifo,
}

/// What the drive does with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Complete when on the medium (SCSI: WCE = 0).
    #[default]
    Off,
    /// Complete when in the buffer; written out in the background. Flush waits until everything
    /// completed before is on the medium; FUA writes go to the medium.
    On,
    /// Like `On`, but flush and FUA return at once: the drive does not keep its word.
    Lying,
}

/// The parameters of a [`Hdd`](super::Hdd). Default: [`HddParams::cheetah_15k6_146`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HddParams {
    /// What it is, for people.
    pub description: String,
    /// Capacity in sectors of 512 bytes.
    pub sectors: u64,
    /// Revolutions per minute.
    pub rpm: u32,
    /// Recording surfaces.
    pub heads: u32,
    /// Zones of equal numbers of cylinders, with sectors per track falling linearly inwards.
    pub zones: u32,
    /// Sustained rate of the outermost zone in MB/s, switching of tracks included.
    pub sustained_outer_mb_per_s: f64,
    /// Sustained rate of the innermost zone.
    pub sustained_inner_mb_per_s: f64,
    /// Seek to the next cylinder for a read. Also the time to switch heads: at these track
    /// densities the surfaces are not aligned, and the head seeks anew on the other surface.
    pub seek_read_track_to_track_ms: f64,
    /// Average over all pairs of cylinders.
    pub seek_read_average_ms: f64,
    /// From the outermost cylinder to the innermost.
    pub seek_read_full_stroke_ms: f64,
    /// The same for a write, which needs a finer settling.
    pub seek_write_track_to_track_ms: f64,
    /// Average over all pairs of cylinders.
    pub seek_write_average_ms: f64,
    /// From the outermost cylinder to the innermost.
    pub seek_write_full_stroke_ms: f64,
    /// How much sooner or later than the curve says a seek may end, evenly spread: vibration,
    /// temperature, the servo's own luck. The drive orders its queue by the curve and may so miss
    /// a sector by a little and wait for a revolution.
    pub seek_variation_ms: f64,
    /// Rotation between the end of a track and the beginning of the next of the same cylinder.
    pub track_skew_ms: f64,
    /// The same from the last track of a cylinder to the first of the next.
    pub cylinder_skew_ms: f64,
    /// From the arrival of a command to its being ready for the arm or the cache.
    pub controller_overhead_ms: f64,
    /// Rate of the link, each way.
    pub interface_mb_per_s: f64,
    /// Commands that the drive accepts at a time.
    pub queue_depth: u32,
    /// The order in which they are carried out.
    pub queue_policy: QueuePolicy,
    /// How long a command may be passed over.
    pub queue_age_limit_ms: f64,
    /// Read cache in KiB, in `read_segments` equal parts.
    pub read_cache_kb: u32,
    /// Streams that the read cache can follow.
    pub read_segments: u32,
    /// Whether the drive reads on after a read while nothing else is to be done.
    pub look_ahead: bool,
    /// What completes a write.
    pub write_cache: WriteCache,
    /// Buffer for completed writes in KiB.
    pub write_buffer_kb: u32,
}

impl Default for HddParams {
    fn default() -> Self {
        HddParams::cheetah_15k6_146()
    }
}

impl HddParams {
    /// Seagate Cheetah 15K.6 SAS, 146 GB (ST3146356SS). What comes from where is in the text of
    /// [`hdd`](super).
    pub fn cheetah_15k6_146() -> Self {
        HddParams {
            description: "15K SAS disk, 146 GB (model of Seagate Cheetah 15K.6 ST3146356SS)".into(),
            sectors: 286_749_488,
            rpm: 15_000,
            heads: 3,
            zones: 16,
            sustained_outer_mb_per_s: 171.0,
            sustained_inner_mb_per_s: 112.0,
            seek_read_track_to_track_ms: 0.2,
            seek_read_average_ms: 3.4,
            seek_read_full_stroke_ms: 6.6,
            seek_write_track_to_track_ms: 0.44,
            seek_write_average_ms: 3.9,
            seek_write_full_stroke_ms: 7.4,
            seek_variation_ms: 0.2,
            track_skew_ms: 0.48,
            cylinder_skew_ms: 0.48,
            controller_overhead_ms: 0.2,
            interface_mb_per_s: 300.0,
            queue_depth: 64,
            queue_policy: QueuePolicy::Sptf,
            queue_age_limit_ms: 500.0,
            read_cache_kb: 8 * 1024,
            read_segments: 16,
            look_ahead: true,
            write_cache: WriteCache::Off,
            write_buffer_kb: 8 * 1024,
        }
    }
}

/// The parameters in the units the model computes with.
#[derive(Debug)]
pub(super) struct Derived {
    pub mechanics: Mechanics,
    pub sectors: u64,
    pub overhead_ns: u64,
    pub interface: Rate,
    pub policy: QueuePolicy,
    pub age_limit_ns: u64,
    pub seek_variation_ns: u64,
    pub segments: usize,
    pub segment_sectors: u64,
    pub look_ahead: bool,
    pub write_cache: WriteCache,
    pub buffer_sectors: u64,
}

impl HddParams {
    pub(super) fn derive(&self) -> Result<Derived, ModelError> {
        let c = Checker("hdd");
        c.count("queue_depth", self.queue_depth.into(), 1, 1 << 20)?;
        let sectors = c.count("sectors", self.sectors, 1, 1 << 40)?;
        let segments = c.count("read_segments", self.read_segments.into(), 1, 1024)?;
        let cache = c.count("read_cache_kb", self.read_cache_kb.into(), segments, 1 << 24)?;
        let buffer = c.count("write_buffer_kb", self.write_buffer_kb.into(), 1, 1 << 24)?;
        let shortest = self.seek_read_track_to_track_ms.min(self.seek_write_track_to_track_ms);
        if self.seek_variation_ms > shortest {
            let why = format!("must be at most the shortest seek, {shortest} ms");
            return Err(c.refuse("seek_variation_ms", self.seek_variation_ms, why));
        }
        Ok(Derived {
            seek_variation_ns: c.ms("seek_variation_ms", self.seek_variation_ms)?,
            mechanics: self.mechanics(&c)?,
            sectors,
            overhead_ns: c.ms("controller_overhead_ms", self.controller_overhead_ms)?,
            interface: c.rate("interface_mb_per_s", self.interface_mb_per_s)?,
            policy: self.queue_policy,
            age_limit_ns: c.ms("queue_age_limit_ms", self.queue_age_limit_ms)?,
            segments: segments as usize,
            segment_sectors: cache * 2 / segments,
            look_ahead: self.look_ahead,
            write_cache: self.write_cache,
            buffer_sectors: buffer * 2,
        })
    }

    fn mechanics(&self, c: &Checker) -> Result<Mechanics, ModelError> {
        let geometry = Geometry::new(self, c)?;
        let last = geometry.cylinders() - 1;
        let curve = |track, average, full, name| {
            SeekCurve::fit(track, average, full, last).ok_or_else(|| {
                let text = format!("{track} / {average} / {full} ms over {last} cylinders");
                let why = "no curve of a root and a line has this time to the next cylinder, \
                           average and full stroke";
                c.refuse(name, text, why)
            })
        };
        let read = curve(
            self.seek_read_track_to_track_ms,
            self.seek_read_average_ms,
            self.seek_read_full_stroke_ms,
            "seek_read_*",
        )?;
        let write = curve(
            self.seek_write_track_to_track_ms,
            self.seek_write_average_ms,
            self.seek_write_full_stroke_ms,
            "seek_write_*",
        )?;
        Ok(Mechanics { geometry, read_seek: read, write_seek: write })
    }
}
