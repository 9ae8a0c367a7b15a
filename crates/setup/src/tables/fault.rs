//! `fault` and `media` of `[device.NAME]`: what goes wrong with a device.

use std::time::Duration;

use steadfast_devices::filter::record::Media;
use steadfast_devices::filter::{Effect, FaultRule, Ops};
use steadfast_runtime::Nanos;

use crate::form::{Fields, FormValue, Value, one_of, parsed};
use crate::table;

table! {
    /// Requests that a device does not answer well, as a file has them.
    pub struct FaultForm: "fault of [device.NAME]", check FaultForm::check {
        /// What happens to a request: `fail`, it is not done and fails; `fail-after`, it is done
        /// and fails; `torn`, of a write only the beginning is done, and it fails; `lost`, a write
        /// or flush is not done and succeeds; `misdirected`, a write is done beside its place and
        /// succeeds; `corrupt`, a read returns a bit of each block turned over; `delay`; `gone`, it
        /// and all later ones fail.
        effect: Effect;
        /// Which requests: `read`, `write`, `flush`, `discard` or `all`.
        on: Ops = "all";
        /// So many of them pass first, counted from each mount.
        skip: u64 = 0, from 0 to 1099511627776;
        /// So many are hit after that.
        count: Option<u64>, else "all", from 1 to 1099511627776;
        /// Seconds from the mount on in which none is hit.
        from_s: f64 = 0.0, from 0 to 1000000000;
        /// Only requests that touch what begins here, in KiB ...
        at_kb: u64 = 0, from 0 to 1099511627776;
        /// ... and is so long, in KiB.
        kb: Option<u64>, else "to the end", from 1 to 1099511627776;
        /// With `torn`: so many bytes are done, rounded down to whole blocks.
        torn_bytes: u64 = 0, from 0 to 1099511627776;
        /// With `delay`: the answer comes so much later.
        delay_ms: f64 = 100.0, from 0 to 1000000000;
    }
}

/// The reason of each error.
const INJECTED: &str = "the scenario's fault";

impl Value for Effect {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let all = [
            ("fail", Effect::Fail(INJECTED.into())),
            ("fail-after", Effect::FailAfter(INJECTED.into())),
            ("torn", Effect::Torn(0)),
            ("lost", Effect::Lost),
            ("misdirected", Effect::Misdirected),
            ("corrupt", Effect::Corrupt),
            ("delay", Effect::Delay(Duration::ZERO)),
            ("gone", Effect::Gone(INJECTED.into())),
        ];
        one_of(place, "there is no effect", &all)
    }
}

impl Value for Ops {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let all = [
            ("read", Ops::READ),
            ("write", Ops::WRITE),
            ("flush", Ops::FLUSH),
            ("discard", Ops::DISCARD),
            ("all", Ops::ALL),
        ];
        one_of(place, "there are no requests", &all)
    }
}

impl Value for Media {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        parsed(place, "")
    }
}

impl FaultForm {
    fn check(fields: &Fields<'_>, _: Option<&FaultForm>) {
        let Some(effect) = fields.get::<Effect>("effect") else { return };
        let is_torn = matches!(effect, Effect::Torn(_));
        let is_delay = matches!(effect, Effect::Delay(_));
        for (key, of, is_it) in [("torn_bytes", "torn", is_torn), ("delay_ms", "delay", is_delay)] {
            if fields.has(key) && !is_it {
                fields.wrong(key, format!("`{key}` is for the effect `{of}`"), "leave it out");
            }
        }
    }
}

impl Value for FaultRule {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let form = FaultForm::read(place)?;
        let from = form.at_kb << 10;
        let range = match (from, form.kb) {
            (0, None) => None,
            (from, None) => Some(from..u64::MAX),
            (from, Some(kb)) => Some(from..from + (kb << 10)),
        };
        Some(FaultRule {
            ops: form.on,
            range,
            skip: form.skip,
            count: form.count,
            from: Nanos::ZERO + Duration::from_secs_f64(form.from_s),
            effect: match form.effect {
                Effect::Torn(_) => Effect::Torn(form.torn_bytes),
                Effect::Delay(_) => Effect::Delay(Duration::from_secs_f64(form.delay_ms / 1e3)),
                effect => effect,
            },
        })
    }
}
