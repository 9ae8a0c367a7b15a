//! What describes a disk.

use serde::{Deserialize, Serialize};

use super::zone::ZoneParams;
use crate::model::parameters::{ParameterValue, Source, choice, parameters};

choice! {
    /// In which order queued commands are carried out.
    pub enum QueuePolicy {
        /// The one whose first sector the head can reach soonest, seek and rotation together
        /// (shortest positioning time first); those that have waited for `queue_age_limit_ms` go
        /// before others. Worthington, Ganger and Patt, "Scheduling algorithms for modern disk
        /// drives", SIGMETRICS 1994.
        #[default]
        Sptf = "sptf",
        /// As they came.
        Fifo = "fifo",
    }
}

choice! {
    /// What the drive does with a write.
    pub enum WriteCacheMode {
        /// Complete when on the medium (SCSI: WCE = 0).
        #[default]
        Off = "off",
        /// Complete when in the buffer; written out in the background. Flush waits until everything
        /// completed before is on the medium; FUA writes go to the medium.
        On = "on",
        /// Like `On`, but flush and FUA return at once: the drive does not keep its word.
        Lying = "lying",
    }
}

choice! {
    /// What becomes of the write cache when the machine is reset and the drive keeps its power.
    pub enum CacheAtReset {
        /// The drive writes it out.
        #[default]
        Kept = "kept",
        /// The drive throws it away: a reset takes what a power failure would.
        Lost = "lost",
    }
}

choice! {
    /// From which surface each cylinder is filled.
    pub enum SurfaceOrder {
        /// The first.
        #[default]
        Same = "same",
        /// The last in every second cylinder, so that no head is switched between cylinders.
        Alternating = "alternating",
        /// The last in every second cylinder of a zone.
        AlternatingInZone = "alternating in zone",
    }
}

choice! {
    /// How far a drive reads on after a read.
    pub enum LookAheadUntil {
        /// As many sectors as `look_ahead_sectors` says.
        #[default]
        Sectors = "sectors",
        /// So many, but not beyond the track.
        Track = "track",
        /// So many, but not beyond the cylinder.
        Cylinder = "cylinder",
        /// To the end of the track of the next sector; if the segment already holds sectors of the
        /// track before, to the end of the one after it.
        Tracks = "tracks",
    }
}

/// What the drive's controller takes for a command, in milliseconds, beside the arm and the link.
/// What is not given is `controller_overhead_ms` before a command and nothing after it. *After a
/// write* means that the last command completed was one.
///
/// Measured drives differ by these cases: Worthington, Ganger, Patt and Wilkes, "On-line
/// extraction of SCSI disk drive parameters", SIGMETRICS 1995, section 6.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overheads {
    /// Before a read whose first sector is cached.
    pub read_hit: Option<f64>,
    /// The same after a write.
    pub read_hit_after_write: Option<f64>,
    /// Before another read.
    pub read_miss: Option<f64>,
    /// The same after a write.
    pub read_miss_after_write: Option<f64>,
    /// After a read's last sector has gone over the link.
    pub read_end: f64,
    /// Before a write.
    pub write: Option<f64>,
    /// The same after a write.
    pub write_after_write: Option<f64>,
    /// From there until the link takes the first sector of a write; the arm moves meanwhile.
    pub write_data: f64,
    /// After a write's last sector.
    pub write_end: f64,
    /// The same three for a write after a write that it does not continue, where they differ.
    pub write_apart: Option<WriteOverheads>,
}

/// The overheads of a write.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteOverheads {
    /// As [`Overheads::write`].
    pub before: f64,
    /// As [`Overheads::write_data`].
    pub data: f64,
    /// As [`Overheads::write_end`].
    pub end: f64,
}

impl ParameterValue for Overheads {}

const MANUAL: Source =
    Source::Sheet("Seagate, Cheetah 15K.6 SAS Product Manual, 100466193 rev. B, 2008");
const SIBLINGS: Source = Source::Follows("twice the average, as of Savvio 10K.4");
const SPLIT: Source = Source::Assumed("half of the manual's 16 MB each for reads and writes");

parameters! {
    /// The parameters of a [`Hdd`](super::Hdd). Default: Seagate Cheetah 15K.6
    /// SAS, 146 GB (ST3146356SS). What comes from where is in the text of [`hdd`](super).
    pub struct HddParams {
        /// What it is, for people.
        description: String =
            "15K SAS disk, 146 GB (model of Seagate Cheetah 15K.6 ST3146356SS)".into(), "",
            Source::Choice;
        /// Capacity in sectors of 512 bytes.
        sectors: u64 = 286_749_488, [1, 1 << 40], "sectors of 512 bytes", MANUAL;
        /// Revolutions per minute.
        rpm: u32 = 15_000, [60, 1_000_000], "1/min", MANUAL;
        /// Recording surfaces.
        heads: u32 = 3, [1, 64], "", Source::Assumed("about 50 GB a surface");
        /// Zones of equal numbers of cylinders, with sectors per track falling linearly inwards.
        zones: u32 = 16, [1, 1024], "", Source::Assumed("not published");
        /// Sustained rate of the outermost zone in MB/s, switching of tracks included.
        sustained_outer_mb_per_s: f64 = 171.0, "MB/s", MANUAL;
        /// Sustained rate of the innermost zone.
        sustained_inner_mb_per_s: f64 = 112.0, "MB/s", MANUAL;
        /// Seek to the next cylinder for a read.
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
        /// Measured seek times in ms over distances in cylinders, for reads, in place of the three
        /// figures each: `[[1, 0.83], [2, 1.0]]`.
        seek_table: Vec<(u32, f64)> = Vec::new(), "", Source::Choice;
        /// How much longer a write settles than a read, with a seek table or a head switch. Seek
        /// times that were measured with writes have less than nothing here.
        write_settle_ms: Option<f64> = None, [-60_000, 60_000], "ms",
            Source::Follows("the seeks to the next cylinder");
        /// Time to switch heads, for a read. Not given: as a seek to the next cylinder.
        head_switch_ms: Option<f64> = None, "ms",
            Source::Assumed("at these track densities the head seeks anew on the other surface");
        /// Rotation between the end of a track and the beginning of the next of the same cylinder.
        track_skew_ms: f64 = 0.48, "ms", Source::Assumed("a write's settling and a tenth");
        /// The same from the last track of a cylinder to the first of the next.
        cylinder_skew_ms: f64 = 0.48, "ms", Source::Assumed("a write's settling and a tenth");
        /// Zones as they were measured, with their skews, in place of `zones` equal ones.
        zone_table: Vec<ZoneParams> = Vec::new(), "", Source::Choice;
        /// From which surface each cylinder is filled.
        surface_order: SurfaceOrder = SurfaceOrder::Same, "",
            Source::Assumed("not published");
        /// From the arrival of a command to its being ready for the arm or the cache.
        controller_overhead_ms: f64 = 0.2, "ms",
            Source::Follows("the access times of Savvio 10K.4 with and without overhead");
        /// What differs from that by the kind of command and its place in the sequence.
        overheads: Box<Overheads> = Box::default(), "", Source::Choice;
        /// Rate of the link, each way. Sectors go over it one by one, each when it has been read
        /// and before it is written.
        interface_mb_per_s: f64 = 300.0, "MB/s", MANUAL;
        /// The same from the host to the drive, if it differs.
        interface_write_mb_per_s: Option<f64> = None, "MB/s", MANUAL;
        /// Share of a read that is in the buffer before the link takes its first sector; at the
        /// least one sector is.
        read_water_mark: f64 = 0.0, [0, 1], "", Source::Assumed("as soon as there is data");
        /// Sectors of a write that are in the buffer before the arm begins with it.
        write_start_sectors: u32 = 1, [1, 1 << 20], "sectors",
            Source::Assumed("as soon as there is data");
        /// The least time from then to the first sector on the medium.
        write_start_ms: f64 = 0.0, "ms", Source::Assumed("not published");
        /// Whether a read begins with the sector of it that the head meets first on a track.
        read_on_arrival: bool = false, "", Source::Assumed("not published");
        /// Whether the sectors that pass before the first one that is asked for are kept.
        keep_passed: bool = false, "", Source::Assumed("not published");
        /// Commands that the drive accepts at a time.
        queue_depth: u32 = 64, [1, 1 << 20], "commands",
            Source::Assumed("what Linux gives a SAS disk");
        /// The order in which they are carried out.
        queue_policy: QueuePolicy = QueuePolicy::Sptf, "",
            Source::Assumed("the firmware's order is not published");
        /// How long a command may be passed over.
        queue_age_limit_ms: f64 = 500.0, "ms",
            Source::Assumed("twice the time of a full queue of 256 KiB accesses");
        /// Read cache in KiB, in `read_segments` equal parts.
        read_cache_kb: u32 = 8 * 1024, [1, 1 << 24], "KiB", SPLIT;
        /// Streams that the read cache can follow.
        read_segments: u32 = 16, [1, 1024], "",
            Source::Assumed("left to the firmware by older manuals of the family");
        /// Whether the drive reads on after a read while nothing else is to be done.
        look_ahead: bool = true, "", Source::Assumed("not published");
        /// How far it reads on.
        look_ahead_until: LookAheadUntil = LookAheadUntil::Sectors, "",
            Source::Assumed("not published");
        /// Sectors that it reads on. Not given: a segment.
        look_ahead_sectors: Option<u32> = None, [0, 1 << 30], "sectors",
            Source::Assumed("not published");
        /// Whether a read from the cache makes it read on again after it had come to the end.
        look_ahead_after_hit: bool = true, "", Source::Assumed("not published");
        /// Sectors of a segment. Not given: all of the read cache, in equal parts.
        segment_sectors: Option<u32> = None, [1, 1 << 30], "sectors",
            Source::Assumed("left to the firmware by older manuals of the family");
        /// What completes a write.
        write_cache: WriteCacheMode = WriteCacheMode::Off, "", Source::Choice;
        /// What becomes of completed writes when the machine is reset.
        cache_at_reset: CacheAtReset = CacheAtReset::Kept, "", Source::Choice;
        /// Buffer for completed writes in KiB.
        write_buffer_kb: u32 = 8 * 1024, [1, 1 << 24], "KiB", SPLIT;
        /// Runs of sectors that it holds at a time: with one, a write that does not continue the
        /// one before waits until that is on the medium. Not given: as many as fit.
        write_runs: Option<u32> = None, [1, 1 << 20], "runs", Source::Assumed("not published");
    }
}
