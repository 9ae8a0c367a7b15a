//! What describes a disk.

use crate::model::parameters::{Source, choice, parameters};

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
        /// What completes a write.
        write_cache: WriteCacheMode = WriteCacheMode::Off, "", Source::Choice;
        /// What becomes of completed writes when the machine is reset.
        cache_at_reset: CacheAtReset = CacheAtReset::Kept, "", Source::Choice;
        /// Buffer for completed writes in KiB.
        write_buffer_kb: u32 = 8 * 1024, [1, 1 << 24], "KiB", SPLIT;
    }
}
