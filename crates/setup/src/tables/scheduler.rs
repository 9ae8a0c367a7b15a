//! `[scheduler.NAME]`: the request scheduler before a disk.

use std::time::Duration;

use steadfast_devices::filter::schedule::{
    DeadlineSettings, Policy, SchedulerSettings, ThrottleSettings,
};

use crate::form::{Fields, FormValue, Value, one_of};
use crate::table;

table! {
    /// A request scheduler, as a file has it.
    pub struct SchedulerForm: "[scheduler.NAME]", check SchedulerForm::check {
        /// `fifo`, as they come, or `deadline`, by Linux's mq-deadline.
        policy: PolicyName = "fifo";
        /// Requests that the device has at once.
        depth: u64 = 32, from 1 to 1048576;
        /// Most data that is queued or at the device in each direction, in KiB; beyond it the
        /// caller waits.
        queue_kb: u64 = 32768, from 4 to 1073741824;
        /// With `deadline`: a read that has waited this long is served first.
        read_expire_ms: f64 = 500.0, from 0 to 3600000;
        /// With `deadline`: the same of a write.
        write_expire_ms: f64 = 5000.0, from 0 to 3600000;
        /// With `deadline`: batches of reads that may go before waiting writes.
        writes_starved: u64 = 2, from 0 to 1048576;
        /// With `deadline`: requests of one direction that are served one after the other.
        fifo_batch: u64 = 16, from 1 to 1048576;
        /// With `deadline`: how long after a read no write is begun, as the next read may follow;
        /// for `writes_starved` batches at most. Linux 2.6's anticipatory scheduler: 6 to 7.
        anticipation_ms: f64 = 0.0, from 0 to 3600000;
        /// Writeback throttling: in how many milliseconds reads are to be answered; fewer writes
        /// are let in while they are not. Linux: 75 where seeks cost time, else 2.
        wbt_lat_ms: Option<f64>, else "no throttling", from 0.1 to 3600000;
        /// With `wbt_lat_ms`: how long is looked before the number of writes is changed.
        wbt_window_ms: f64 = 100.0, from 0.1 to 3600000;
    }
}

/// A policy by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// As they come.
    Fifo,
    /// mq-deadline.
    Deadline,
}

impl Value for PolicyName {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        one_of(place, "there is no policy", &[("fifo", Self::Fifo), ("deadline", Self::Deadline)])
    }
}

/// Keys that only mq-deadline has.
const OF_DEADLINE: [&str; 5] =
    ["read_expire_ms", "write_expire_ms", "writes_starved", "fifo_batch", "anticipation_ms"];

impl SchedulerForm {
    fn check(fields: &Fields<'_>, _: Option<&SchedulerForm>) {
        let others = OF_DEADLINE.into_iter().filter(|key| fields.has(key));
        let is_fifo = fields.at("policy").is_none_or(|_| {
            fields.get::<PolicyName>("policy").is_some_and(|name| name == PolicyName::Fifo)
        });
        for key in others.filter(|_| is_fifo) {
            let what = format!("`{key}` belongs to the policy `deadline`");
            fields.wrong(key, what, "add policy = \"deadline\", or leave it out");
        }
        let window = "wbt_window_ms";
        if fields.has(window) && !fields.has("wbt_lat_ms") {
            let help = "add wbt_lat_ms, its target: 75 where seeks cost time";
            fields.wrong(window, format!("`{window}` belongs to writeback throttling"), help);
        }
    }
}

impl Value for SchedulerSettings {
    const TITLE: Option<&'static str> = Some(SchedulerForm::TITLE);

    fn read(place: &FormValue<'_>) -> Option<Self> {
        let form = SchedulerForm::read(place)?;
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let target = form.wbt_lat_ms.map(ms);
        let window = ms(form.wbt_window_ms);
        Some(SchedulerSettings {
            policy: match form.policy {
                PolicyName::Fifo => Policy::Fifo,
                PolicyName::Deadline => Policy::Deadline(DeadlineSettings {
                    read_expire: ms(form.read_expire_ms),
                    write_expire: ms(form.write_expire_ms),
                    writes_starved: form.writes_starved,
                    fifo_batch: form.fifo_batch,
                    anticipation: ms(form.anticipation_ms),
                }),
            },
            depth: form.depth,
            queue_bytes: form.queue_kb << 10,
            throttle: target.map(|target| ThrottleSettings {
                target,
                window,
                queue_depth: form.depth,
            }),
        })
    }
}
