//! `fault` and `media` of `[device.NAME]`: what goes wrong with a device.

use std::time::Duration;

use steadfast_devices::filter::record::Media;
use steadfast_devices::filter::{Effect, FaultRule, Ops};
use steadfast_runtime::Nanos;

use super::fields::Fields;
use super::keys::Table;
use super::read::{count, number};
use super::wrong::did_you_mean;

const OPS: [(&str, Ops); 5] = [
    ("read", Ops::READ),
    ("write", Ops::WRITE),
    ("flush", Ops::FLUSH),
    ("discard", Ops::DISCARD),
    ("all", Ops::ALL),
];
const EFFECTS: [&str; 7] = ["fail", "fail-after", "torn", "lost", "corrupt", "delay", "gone"];
/// The reason of each error.
const INJECTED: &str = "the scenario's fault";
/// The largest number of requests, and of KiB.
const MOST: u64 = 1 << 40;

/// The faults of a device; `None`: one is wrong, which is noted.
pub(super) fn faults(device: &Fields<'_, '_>) -> Option<Vec<FaultRule>> {
    if device.value("fault").is_none() {
        return Some(Vec::new());
    }
    let fields = device.table("fault", Table::Fault, "fault of [device.NAME]")?;
    Some(vec![rule(&fields)?])
}

/// What a power cut does to a device.
pub(super) fn media(device: &Fields<'_, '_>) -> Option<Media> {
    let text: String = device.take("media")?;
    match text.parse() {
        Ok(media) => Some(media),
        Err(e) => {
            let e: steadfast_devices::filter::record::MediaError = e;
            device.wrong("media", e.to_string(), "");
            None
        }
    }
}

fn rule(fields: &Fields<'_, '_>) -> Option<FaultRule> {
    let (on, effect) = (ops(fields), effect(fields));
    let skip = count(fields, "skip", 0, MOST);
    let hit = fields.value("count").map(|_| count(fields, "count", 1, MOST));
    let from = number(fields, "from_s", 0.0, 1e9);
    let at = count(fields, "at_kb", 0, MOST);
    let len = fields.value("kb").map(|_| count(fields, "kb", 1, MOST));
    let (at, len) = (at? << 10, len.map_or(Some(None), |kb| kb.map(Some))?);
    let range = match (at, len) {
        (0, None) => None,
        (at, None) => Some(at..u64::MAX),
        (at, Some(kb)) => Some(at..at + (kb << 10)),
    };
    Some(FaultRule {
        ops: on?,
        range,
        skip: skip?,
        count: hit.map_or(Some(None), |hit| hit.map(Some))?,
        from: Nanos::ZERO + Duration::from_secs_f64(from?),
        effect: effect?,
    })
}

fn ops(fields: &Fields<'_, '_>) -> Option<Ops> {
    let name: String = fields.take("on")?;
    let known = OPS.iter().find(|(known, _)| *known == name).map(|(_, ops)| *ops);
    if known.is_none() {
        let help = did_you_mean(&name, OPS.map(|(name, _)| name));
        fields.wrong("on", format!("there are no requests `{name}`"), help);
    }
    known
}

fn effect(fields: &Fields<'_, '_>) -> Option<Effect> {
    let name: String = fields.take("effect")?;
    for (key, of) in [("torn_bytes", "torn"), ("delay_ms", "delay")] {
        if fields.value(key).is_some() && name != of {
            fields.wrong(key, format!("`{key}` is for the effect `{of}`"), "leave it out");
        }
    }
    let bytes = count(fields, "torn_bytes", 0, MOST)?;
    let delay = Duration::from_secs_f64(number(fields, "delay_ms", 0.0, 1e9)? / 1e3);
    Some(match name.as_str() {
        "fail" => Effect::Fail(INJECTED.into()),
        "fail-after" => Effect::FailAfter(INJECTED.into()),
        "torn" => Effect::Torn(bytes),
        "lost" => Effect::Lost,
        "corrupt" => Effect::Corrupt,
        "delay" => Effect::Delay(delay),
        "gone" => Effect::Gone(INJECTED.into()),
        _ => {
            let help = did_you_mean(&name, EFFECTS);
            fields.wrong("effect", format!("there is no effect `{name}`"), help);
            return None;
        }
    })
}
