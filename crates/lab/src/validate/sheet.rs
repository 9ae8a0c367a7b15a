//! A drive as a data sheet describes it.

use steadfast_devices::model::HddParams;
use steadfast_devices::model::hdd::ZoneParams;

/// Only what a data sheet says: capacity, rotation, surfaces, the rates of the outermost and the
/// innermost zone, three seek times for reads, and for writes with their settling, the buffer and
/// its segments, the rate of the link, and whether there is a write cache. All else is what the
/// model takes without being told; skews follow from the time to settle on the next track.
pub(super) fn only(p: &HddParams) -> HddParams {
    let sheet = HddParams {
        description: format!("{}, data sheet only", p.description),
        sectors: p.sectors,
        rpm: p.rpm,
        heads: p.heads,
        interface_mb_per_s: p.interface_mb_per_s,
        read_cache_kb: p.read_cache_kb,
        read_segments: p.read_segments,
        write_cache: p.write_cache,
        write_buffer_kb: p.write_buffer_kb,
        seek_variation_ms: 0.0,
        queue_depth: p.queue_depth,
        ..HddParams::default()
    };
    let zones = p.zone_table.first().zip(p.zone_table.last());
    let (read, write) = match (&p.seek_table[..], zones) {
        ([], _) => (
            [p.seek_read_track_to_track_ms, p.seek_read_average_ms, p.seek_read_full_stroke_ms],
            [p.seek_write_track_to_track_ms, p.seek_write_average_ms, p.seek_write_full_stroke_ms],
        ),
        ([.., (furthest, _)], zones) => {
            let cylinders =
                zones.map_or(furthest + 1, |(_, last)| last.first_cylinder + last.cylinders);
            let read = seeks(&p.seek_table, cylinders);
            (read, read.map(|ms| ms + p.write_settle_ms.unwrap_or(0.0)))
        }
    };
    let skew = write[0] * 1.1;
    let turn_s = 60.0 / f64::from(p.rpm);
    let heads = f64::from(p.heads);
    // Switching of tracks included, as sheets have it.
    let rate = |zone: &ZoneParams| {
        let cylinder_s = heads * (turn_s + skew / 1e3);
        f64::from(zone.sectors_per_track) * heads * 512.0 / cylinder_s / 1e6
    };
    let (outer, inner) = match zones {
        Some((first, last)) => (rate(first), rate(last)),
        None => (p.sustained_outer_mb_per_s, p.sustained_inner_mb_per_s),
    };
    HddParams {
        sustained_outer_mb_per_s: outer,
        sustained_inner_mb_per_s: inner,
        seek_read_track_to_track_ms: read[0],
        seek_read_average_ms: read[1],
        seek_read_full_stroke_ms: read[2],
        seek_write_track_to_track_ms: write[0],
        seek_write_average_ms: write[1],
        seek_write_full_stroke_ms: write[2],
        track_skew_ms: skew,
        cylinder_skew_ms: skew,
        ..sheet
    }
}

/// To the next cylinder, average over all pairs of cylinders, full stroke.
fn seeks(table: &[(u32, f64)], cylinders: u32) -> [f64; 3] {
    let (Some(first), Some(last)) = (table.first(), table.last()) else { return [0.0; 3] };
    let n = f64::from(cylinders.max(2));
    // Of two cylinders, n - d pairs are d apart: each stretch of the table by its middle.
    let pairs = |d: f64| (n - d).max(0.0);
    let (mut sum, mut weight) = (first.1 * pairs(1.0), pairs(1.0));
    for two in table.windows(2) {
        let (wide, middle) = (f64::from(two[1].0 - two[0].0), f64::from(two[0].0 + two[1].0) / 2.0);
        let share = pairs(middle) * wide;
        sum += f64::midpoint(two[0].1, two[1].1) * share;
        weight += share;
    }
    [first.1, sum / weight.max(1.0), last.1]
}
