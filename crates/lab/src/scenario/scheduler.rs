//! `[scheduler.NAME]`: the request scheduler before a variant's disk.

use std::time::Duration;

use steadfast_devices::filter::schedule::{
    DeadlineSettings, Policy, SchedulerSettings, ThrottleSettings,
};

use super::fields::Fields;
use super::read::{count, number};
use super::wrong::did_you_mean;

/// Keys that only mq-deadline has.
const OF_DEADLINE: [&str; 5] =
    ["read_expire_ms", "write_expire_ms", "writes_starved", "fifo_batch", "anticipation_ms"];
/// A key that only writeback throttling has, beside its target.
const OF_THROTTLE: &str = "wbt_window_ms";
/// The policies.
const POLICIES: [&str; 2] = ["fifo", "deadline"];

/// Reads one.
pub fn scheduler(fields: &Fields<'_, '_>) -> Option<SchedulerSettings> {
    let name: Option<String> = fields.take("policy");
    let is_deadline = name.as_deref() == Some("deadline");
    if let Some(name) = name.as_ref().filter(|n| !POLICIES.contains(&n.as_str())) {
        let what = format!("there is no policy `{name}`");
        fields.wrong("policy", what, did_you_mean(name, POLICIES));
    }
    let is_known = name.as_deref().is_some_and(|n| POLICIES.contains(&n));
    for key in OF_DEADLINE.into_iter().filter(|k| fields.value(k).is_some()) {
        if is_known && !is_deadline {
            let what = format!("`{key}` belongs to the policy `deadline`");
            fields.wrong(key, what, "add policy = \"deadline\", or leave it out");
        }
    }
    let is_throttled = fields.value("wbt_lat_ms").is_some();
    if !is_throttled && fields.value(OF_THROTTLE).is_some() {
        let what = format!("`{OF_THROTTLE}` belongs to writeback throttling");
        fields.wrong(OF_THROTTLE, what, "add wbt_lat_ms, its target: 75 where seeks cost time");
    }
    let ms =
        |name| number(fields, name, 0.0, 3_600_000.0).map(|ms| Duration::from_secs_f64(ms / 1e3));
    let (read_expire, write_expire) = (ms("read_expire_ms"), ms("write_expire_ms"));
    let anticipation = ms("anticipation_ms");
    let writes_starved = count(fields, "writes_starved", 0, 1 << 20);
    let fifo_batch = count(fields, "fifo_batch", 1, 1 << 20);
    let depth = count(fields, "depth", 1, 1 << 20);
    let queue_kb = count(fields, "queue_kb", 4, 1 << 30);
    // A window of nothing would be looked at without end.
    let some_ms =
        |name| number(fields, name, 0.1, 3_600_000.0).map(|ms| Duration::from_secs_f64(ms / 1e3));
    let window = some_ms(OF_THROTTLE);
    let target = if is_throttled { Some(some_ms("wbt_lat_ms")?) } else { None };
    Some(SchedulerSettings {
        policy: match is_deadline {
            false => Policy::Fifo,
            true => Policy::Deadline(DeadlineSettings {
                read_expire: read_expire?,
                write_expire: write_expire?,
                writes_starved: writes_starved?,
                fifo_batch: fifo_batch?,
                anticipation: anticipation?,
            }),
        },
        depth: depth?,
        queue_bytes: queue_kb? << 10,
        throttle: match target {
            None => None,
            Some(target) => Some(ThrottleSettings { target, window: window?, queue_depth: depth? }),
        },
    })
}
