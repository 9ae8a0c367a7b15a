//! What describes a disk.

use serde::{Deserialize, Serialize};

use super::geometry::Geometry;
use super::mechanics::Mechanics;
use super::seek::SeekCurve;
use crate::model::ModelError;
use crate::model::checker::{ByteRate, ParameterChecker};
use crate::model::parameters::{Source, parameters};

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
pub enum WriteCacheMode {
    /// Complete when on the medium (SCSI: WCE = 0).
    #[default]
    Off,
    /// Complete when in the buffer; written out in the background. Flush waits until everything
    /// completed before is on the medium; FUA writes go to the medium.
    On,
    /// Like `On`, but flush and FUA return at once: the drive does not keep its word.
    Lying,
}

/// What becomes of the write cache when the machine is reset and the drive keeps its power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheAtReset {
    /// The drive writes it out.
    #[default]
    Kept,
    /// The drive throws it away: a reset takes what a power failure would.
    Lost,
}

const MANUAL: Source =
    Source::Sheet("Seagate, Cheetah 15K.6 SAS Product Manual, 100466193 rev. B, 2008");
const SIBLINGS: Source = Source::Follows("twice the average, as of Savvio 10K.4");
const SPLIT: Source = Source::Assumed("half of the manual's 16 MB each for reads and writes");

parameters! {
    /// The parameters of a [`Hdd`](super::Hdd). Default: [`HddParams::cheetah_15k6_146`].
    pub struct HddParams {
        /// What it is, for people.
        description: String =
            "15K SAS disk, 146 GB (model of Seagate Cheetah 15K.6 ST3146356SS)".into(), "",
            Source::Choice;
        /// Capacity in sectors of 512 bytes.
        sectors: u64 = 286_749_488, "sectors of 512 bytes", MANUAL;
        /// Revolutions per minute.
        rpm: u32 = 15_000, "1/min", MANUAL;
        /// Recording surfaces.
        heads: u32 = 3, "", Source::Assumed("about 50 GB a surface");
        /// Zones of equal numbers of cylinders, with sectors per track falling linearly inwards.
        zones: u32 = 16, "", Source::Assumed("not published");
        /// Sustained rate of the outermost zone in MB/s, switching of tracks included.
        sustained_outer_mb_per_s: f64 = 171.0, "MB/s", MANUAL;
        /// Sustained rate of the innermost zone.
        sustained_inner_mb_per_s: f64 = 112.0, "MB/s", MANUAL;
        /// Seek to the next cylinder for a read. Also the time to switch heads: at these track
        /// densities the surfaces are not aligned, and the head seeks anew on the other surface.
        seek_read_track_to_track_ms: f64 = 0.2, "ms", MANUAL;
        /// Average over all pairs of cylinders.
        seek_read_average_ms: f64 = 3.4, "ms", MANUAL;
        /// From the outermost cylinder to the innermost.
        seek_read_full_stroke_ms: f64 = 6.6, "ms", SIBLINGS;
        /// The same for a write, which needs a finer settling.
        seek_write_track_to_track_ms: f64 = 0.44, "ms", MANUAL;
        /// Average over all pairs of cylinders.
        seek_write_average_ms: f64 = 3.9, "ms", MANUAL;
        /// From the outermost cylinder to the innermost.
        seek_write_full_stroke_ms: f64 = 7.4, "ms", SIBLINGS;
        /// How much sooner or later than the curve says a seek may end, evenly spread: vibration,
        /// temperature, the servo's own luck. The drive orders its queue by the curve and may so
        /// miss a sector by a little and wait for a revolution.
        seek_variation_ms: f64 = 0.2, "ms",
            Source::Assumed("half of what a write needs to settle");
        /// Rotation between the end of a track and the beginning of the next of the same cylinder.
        track_skew_ms: f64 = 0.48, "ms", Source::Assumed("a write's settling and a tenth");
        /// The same from the last track of a cylinder to the first of the next.
        cylinder_skew_ms: f64 = 0.48, "ms", Source::Assumed("a write's settling and a tenth");
        /// From the arrival of a command to its being ready for the arm or the cache.
        controller_overhead_ms: f64 = 0.2, "ms",
            Source::Follows("the access times of Savvio 10K.4 with and without overhead");
        /// Rate of the link, each way.
        interface_mb_per_s: f64 = 300.0, "MB/s", MANUAL;
        /// Commands that the drive accepts at a time.
        queue_depth: u32 = 64, "commands", Source::Assumed("what Linux gives a SAS disk");
        /// The order in which they are carried out.
        queue_policy: QueuePolicy = QueuePolicy::Sptf, "",
            Source::Assumed("the firmware's order is not published");
        /// How long a command may be passed over.
        queue_age_limit_ms: f64 = 500.0, "ms",
            Source::Assumed("twice the time of a full queue of 256 KiB accesses");
        /// Read cache in KiB, in `read_segments` equal parts.
        read_cache_kb: u32 = 8 * 1024, "KiB", SPLIT;
        /// Streams that the read cache can follow.
        read_segments: u32 = 16, "",
            Source::Assumed("left to the firmware by older manuals of the family");
        /// Whether the drive reads on after a read while nothing else is to be done.
        look_ahead: bool = true, "", Source::Assumed("not published");
        /// What completes a write.
        write_cache: WriteCacheMode = WriteCacheMode::Off, "", Source::Choice;
        /// What becomes of completed writes when the machine is reset.
        cache_at_reset: CacheAtReset = CacheAtReset::Kept, "", Source::Choice;
        /// Buffer for completed writes in KiB.
        write_buffer_kb: u32 = 8 * 1024, "KiB", SPLIT;
    }
}

impl HddParams {
    /// Seagate Cheetah 15K.6 SAS, 146 GB (ST3146356SS). What comes from where is in the text of
    /// [`hdd`](super).
    pub fn cheetah_15k6_146() -> Self {
        HddParams::default()
    }
}

/// The parameters in the units the model computes with.
#[derive(Debug)]
pub(super) struct HddTimings {
    pub mechanics: Mechanics,
    pub sectors: u64,
    pub overhead_ns: u64,
    pub interface: ByteRate,
    pub policy: QueuePolicy,
    pub age_limit_ns: u64,
    pub seek_variation_ns: u64,
    pub segments: usize,
    pub segment_sectors: u64,
    pub look_ahead: bool,
    pub write_cache: WriteCacheMode,
    pub buffer_sectors: u64,
}

impl HddParams {
    pub(super) fn derive(&self) -> Result<HddTimings, ModelError> {
        let c = ParameterChecker("hdd");
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
        Ok(HddTimings {
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

    fn mechanics(&self, c: &ParameterChecker) -> Result<Mechanics, ModelError> {
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
