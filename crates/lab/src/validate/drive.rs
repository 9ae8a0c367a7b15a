//! DiskSim's parameters of a drive as those of our model.
//!
//! What each key means: "The DiskSim Simulation Environment, version 4.0", sections 3.6 and 3.7.
//! What our model has no parameter for is said, and left out.

use steadfast_devices::model::hdd::{
    LookAheadUntil, Overheads, QueuePolicy, SurfaceOrder, WriteCacheMode, WriteOverheads,
    ZoneParams,
};
use steadfast_devices::model::{HddParams, ModelParams};

use super::seeks;
use super::syntax::{Block, Value};

/// The blocks of a drive, wherever they stood.
pub(super) struct Blocks {
    /// `disksim_disk`.
    pub disk: Block,
    /// `dm_disk`.
    pub model: Block,
    /// All `disksim_bus`.
    pub buses: Vec<Block>,
    /// The text of the file of seek times, if there is one.
    pub seek_times: Option<String>,
}

/// Sectors of a write that a drive with extra disconnects has before the arm begins (the manual's
/// section on them).
const EXTRA_START_SECTORS: u32 = 10;
/// A link that takes no time, in MB/s.
const NO_TIME: f64 = 1e5;

/// The drive, and what of its parameters was left out.
pub(super) fn parameters(b: &Blocks) -> Result<(HddParams, Vec<String>), String> {
    let Blocks { disk, model, buses, .. } = b;
    let mechanics = inner(model, "Mechanical Model")?;
    let layout = inner(model, "Layout Model")?;
    let needed = |block: &Block, key: &str| {
        block.number(key).ok_or_else(|| format!("'{key}' is missing in {}", block.kind))
    };
    let access = mechanics.word("Access time type").unwrap_or("trackSwitchPlusRotation");
    if access != "trackSwitchPlusRotation" {
        return Err(format!("'Access time type = {access}' is not modelled"));
    }
    let heads = needed(model, "Number of data surfaces")? as u32;
    let zones = zones(layout, heads)?;
    let rpm = needed(mechanics, "Rotation speed (in rpms)")?;
    let link = |key: &str| {
        let ms = buses.iter().map(|bus| bus.or_0(key)).fold(0.0, f64::max);
        let ms = ms.max(disk.or_0("Bulk sector transfer time"));
        if ms > 0.0 { 512e-3 / ms } else { NO_TIME }
    };
    let segments = disk.or_0("Number of buffer segments").max(1.0);
    let own_write_segment = disk.is_on("Use separate write segment") && segments > 1.0;
    let segment = disk.or_0("Segment size (in blks)").max(1.0);
    let caches = disk.is_on("Enable caching in buffer");
    let (until, ahead) = look_ahead(disk);
    let fast = disk.is_on("Fast write level");
    let by_request = disk.is_on("Set watermark by reqsize");
    let extra = disk.is_on("Extra write disconnect");
    let mut p = HddParams {
        description: format!("{} of DiskSim's parameter files", disk.kind),
        rpm: rpm.round() as u32,
        heads,
        zone_table: zones,
        surface_order: match layout.or_0("LBN-to-PBN mapping scheme") as u32 {
            1 => SurfaceOrder::AlternatingInZone,
            2 => SurfaceOrder::Alternating,
            _ => SurfaceOrder::Same,
        },
        seek_table: seeks::table(mechanics, model, b.seek_times.as_deref())?,
        seek_variation_ms: 0.0,
        write_settle_ms: mechanics.number("Add. write settling delay"),
        head_switch_ms: mechanics.number("Head switch time"),
        controller_overhead_ms: 0.0,
        overheads: Box::new(overheads(disk, fast, extra)),
        interface_mb_per_s: link("Read block transfer time"),
        interface_write_mb_per_s: Some(link("Write block transfer time")),
        read_water_mark: if by_request { disk.or_0("High (read) water mark") } else { 0.0 },
        write_start_sectors: if extra { EXTRA_START_SECTORS } else { 1 },
        write_start_ms: disk.or_0("Minimum seek delay"),
        read_on_arrival: disk.is_on("Immediate buffer read"),
        keep_passed: disk.is_on("Read any free blocks"),
        queue_depth: 1,
        queue_policy: QueuePolicy::Fifo,
        read_cache_kb: (segments * segment / 2.0).ceil() as u32,
        read_segments: segments as u32 - u32::from(own_write_segment),
        segment_sectors: Some(segment as u32),
        look_ahead: caches && until.is_some(),
        look_ahead_until: until.unwrap_or_default(),
        look_ahead_sectors: ahead,
        look_ahead_after_hit: disk.is_on("Read-ahead on idle hit"),
        write_cache: if fast { WriteCacheMode::On } else { WriteCacheMode::Off },
        write_buffer_kb: (segments * segment / 2.0).ceil() as u32,
        write_runs: fast.then_some(1),
        ..HddParams::default()
    };
    p.sectors = held(&p)?;
    let mut said = Vec::new();
    let cylinders = p.zone_table.last().map_or(0, |z| z.first_cylinder + z.cylinders);
    for (key, held) in [("Block count", p.sectors), ("Number of cylinders", cylinders.into())] {
        if let Some(count) = model.number(key).filter(|count| *count != held as f64) {
            said.push(format!("{key} is {count}, but the zones have {held}, which is used"));
        }
    }
    let left_out = LEFT_OUT.iter().filter(|(key, _)| disk.is_on(key));
    let mut left_out: Vec<String> = left_out.map(|(key, what)| format!("{key}: {what}")).collect();
    left_out.extend(said);
    if !by_request && disk.is_on("High (read) water mark") {
        left_out.push("High (read) water mark: by segment; taken as one sector".into());
    }
    if layout_zones(layout).any(|zone| !zone.list("defects").is_empty()) {
        left_out.push("defects: remapped sectors are read where they would lie".into());
    }
    Ok((p, left_out))
}

/// What our model does not have; if it is on.
const LEFT_OUT: &[(&str, &str)] = &[
    ("Allow sneaky full read hits", "reads from the cache are always answered at once"),
    ("Allow write prebuffering", "a write is taken when it can be"),
    ("Preseeking level", "the arm moves on at once"),
    ("Minimum read-ahead (blks)", "reading on yields at once"),
    ("Never disconnect", "with one request at a time it makes no difference"),
    ("Immediate buffer write", "sectors are written in their order"),
];

/// The sectors that the zones hold.
fn held(p: &HddParams) -> Result<u64, String> {
    // The check names how many there are room for.
    let probe = HddParams { sectors: 1, ..p.clone() };
    ModelParams::Hdd(probe).check().map_err(|e| e.to_string())?;
    Ok(p.zone_table.iter().map(|zone| zone.sectors(p.heads)).sum())
}

fn inner<'b>(block: &'b Block, key: &str) -> Result<&'b Block, String> {
    match block.values.get(key) {
        Some(Value::Block(inner)) => Ok(inner),
        _ => Err(format!("'{key}' is missing in {}", block.kind)),
    }
}

fn layout_zones(layout: &Block) -> impl Iterator<Item = &Block> {
    layout.list("Zones").iter().filter_map(|zone| match zone {
        Value::Block(zone) => Some(zone),
        _ => None,
    })
}

fn look_ahead(disk: &Block) -> (Option<LookAheadUntil>, Option<u32>) {
    let most = disk.or_0("Maximum read-ahead (blks)") as u32;
    let ahead = (most > 0).then_some(most);
    match disk.or_0("Buffer continuous read") as u32 {
        0 => (None, None),
        1 => (Some(LookAheadUntil::Track), ahead),
        2 => (Some(LookAheadUntil::Cylinder), ahead),
        4 => (Some(LookAheadUntil::Tracks), ahead),
        _ => (Some(LookAheadUntil::Sectors), ahead),
    }
}

fn overheads(disk: &Block, fast: bool, extra: bool) -> Overheads {
    let scale = disk.number("Time scale for overheads").unwrap_or(1.0);
    let ms = |key: &str| disk.or_0(key) * scale;
    let before = |key: &str| Some(ms(key) + ms("Per-request overhead time"));
    let prepare = ms("Data preparation overhead");
    let (after_read, after_write) = match fast {
        true => ("Write hit over. after read", "Write hit over. after write"),
        false => ("Write miss over. after read", "Write miss over. after write"),
    };
    // A drive without a write cache reselects the host when the write is on the medium.
    let again = |key: &str| if fast { 0.0 } else { ms(key) };
    let apart = || {
        let before = ms("Extradisc command overhead") + ms("Extradisc seek delta");
        let data = ms("Extradisc command overhead")
            + ms("Extradisc disconnect overhead")
            + ms("Extradisc inter-disconnect delay")
            + ms("First reselect overhead")
            + prepare;
        let end = again("Other reselect overhead") + ms("Write completion overhead");
        WriteOverheads { before, data: (data - before).max(0.0), end }
    };
    Overheads {
        read_hit: before("Read hit over. after read"),
        read_hit_after_write: before("Read hit over. after write"),
        read_miss: before("Read miss over. after read"),
        read_miss_after_write: before("Read miss over. after write"),
        read_end: ms("Read completion overhead") + prepare,
        write: before(after_read),
        write_after_write: before(after_write),
        write_data: prepare,
        write_end: again("First reselect overhead") + ms("Write completion overhead"),
        write_apart: extra.then(apart),
    }
}

fn zones(layout: &Block, heads: u32) -> Result<Vec<ZoneParams>, String> {
    let scheme = layout.or_0("Sparing scheme used") as u32;
    let range = layout.or_0("Rangesize for sparing").max(1.0);
    let zones: Vec<ZoneParams> = layout_zones(layout)
        .map(|z| {
            let number = |key: &str| {
                let found = z.number(key).filter(|n| n.is_finite() && *n >= 0.0);
                found.ok_or_else(|| format!("a zone has no '{key}'"))
            };
            let per_track = number("Blocks per track")?;
            let (first, last) = (number("First cylinder number")?, number("Last cylinder number")?);
            let units = z.word("Skew units").or(layout.word("Skew units"));
            let unit = if units == Some("revolutions") { per_track } else { 1.0 };
            let spares = z.or_0("Number of spares") as u64;
            let (per_track, cylinder) = (per_track as u64, per_track * f64::from(heads));
            let slipped = z.numbers("slips");
            let slips = slipped.len() as u64;
            let (spares, region) = match scheme {
                // Whole tracks, at the end of the zone.
                1 => (spares * per_track, 0),
                2 | 4..=6 => (spares, cylinder as u64),
                3 => (spares, per_track),
                8 => (spares, (cylinder * range) as u64),
                9 => (spares, 0),
                // Slipped sectors take none of them.
                10 => (spares + slips, 0),
                _ => (0, 0),
            };
            let run = |at: &f64| match scheme {
                1 => (*at as u64 * per_track, per_track),
                _ => (*at as u64, 1),
            };
            Ok(ZoneParams {
                first_cylinder: first as u32,
                cylinders: (last - first + 1.0).max(0.0) as u32,
                sectors_per_track: per_track as u32,
                track_skew: z.or_0("Skew for track switch") * unit,
                cylinder_skew: z.or_0("Skew for cylinder switch") * unit,
                begins_at: z.or_0("Offset of first block") * unit,
                unused: z.or_0("Empty space at zone front") as u64,
                spares,
                spare_region: region,
                spares_in_front: matches!(scheme, 5 | 6),
                slipped: slipped.iter().map(run).collect(),
            })
        })
        .collect::<Result<_, String>>()?;
    if zones.is_empty() {
        return Err("the layout has no zones of the form dm_layout_g1".into());
    }
    Ok(zones)
}
