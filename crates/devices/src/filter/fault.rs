//! Injected faults: errors, torn and lost writes, wrong bytes, delays, a device that disappears.
//!
//! A [`FaultRule`] selects requests (kind, range, how many to skip first, how many to affect, from
//! which time) and gives their [`Effect`]. Rules are added and removed while the device runs,
//! through a [`Faults`] handle. Every rule sees every request and counts its matches; the first
//! rule that is due decides.

use std::collections::BTreeMap;
use std::ops::{BitOr, Range};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Payload, Request, check};
use steadfast_runtime::{Mutex, Nanos, now, sleep_until};

/// A set of request kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ops(u8);

impl Ops {
    /// Reads.
    pub const READ: Ops = Ops(1);
    /// Writes.
    pub const WRITE: Ops = Ops(2);
    /// Flushes.
    pub const FLUSH: Ops = Ops(4);
    /// Discards.
    pub const DISCARD: Ops = Ops(8);
    /// All of them.
    pub const ALL: Ops = Ops(15);

    fn of(request: &Request) -> Ops {
        match request {
            Request::Read { .. } => Ops::READ,
            Request::Write { .. } => Ops::WRITE,
            Request::Flush => Ops::FLUSH,
            Request::Discard { .. } => Ops::DISCARD,
        }
    }

    fn contains(self, other: Ops) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Ops {
    type Output = Ops;
    fn bitor(self, other: Ops) -> Ops {
        Ops(self.0 | other.0)
    }
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing is done; the answer is an error with this reason.
    Fail(String),
    /// It is done, and the answer is an error all the same.
    FailAfter(String),
    /// Of a write only the first so many bytes are done (rounded down to whole logical blocks);
    /// the answer is an error. Other requests: as [`Effect::Fail`].
    Torn(u64),
    /// A write or discard is not done, a flush does not reach the device; the answer is success.
    /// A read: no effect.
    Lost,
    /// A write is done beside its place, behind it or, at the end of the device, before it; the
    /// answer is success. Others: no effect. (Misdirected writes: Bairavasundaram et al., FAST
    /// 2008.)
    Misdirected,
    /// A read returns its bytes with one bit of each logical block turned over. Others: no effect.
    Corrupt,
    /// It is done at once, but its answer comes no earlier than this long after its submission.
    Delay(Duration),
    /// Nothing is done, and from now on every request is answered with "is gone".
    Gone(String),
}

/// Which requests, and what happens to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    /// Kinds of request.
    pub ops: Ops,
    /// Only those that touch this range of bytes. A flush touches no range.
    pub range: Option<Range<u64>>,
    /// So many matching requests pass first.
    pub skip: u64,
    /// So many are hit after that; `None`: all.
    pub count: Option<u64>,
    /// Requests before this instant do not match.
    pub from: Nanos,
    /// What happens.
    pub effect: Effect,
}

impl FaultRule {
    /// All requests of these kinds, from the first on.
    pub fn new(ops: Ops, effect: Effect) -> Self {
        FaultRule { ops, range: None, skip: 0, count: None, from: Nanos::ZERO, effect }
    }

    /// Only the `n`th matching request, counting from 1.
    pub fn nth(self, n: u64) -> Self {
        FaultRule { skip: n.saturating_sub(1), count: Some(1), ..self }
    }

    /// Only requests that touch this range of bytes.
    pub fn within(self, range: Range<u64>) -> Self {
        FaultRule { range: Some(range), ..self }
    }

    /// Only requests submitted at `from` or later.
    pub fn from(self, from: Nanos) -> Self {
        FaultRule { from, ..self }
    }

    fn matches(&self, request: &Request, now: Nanos) -> bool {
        let touches = |range: &Range<u64>| {
            let touched = |(at, len): (u64, u64)| at < range.end && range.start < at + len;
            request.range().is_some_and(touched)
        };
        now >= self.from
            && self.ops.contains(Ops::of(request))
            && self.range.as_ref().is_none_or(touches)
    }
}

/// Names a rule of one [`Faults`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(u64);

#[derive(Default)]
struct State {
    rules: BTreeMap<RuleId, (FaultRule, u64)>,
    next_id: u64,
    hits: u64,
    gone: Option<String>,
}

impl State {
    /// Counts the request with every rule; the effect of the first that is due.
    fn effect(&mut self, request: &Request) -> Option<Effect> {
        let now = now();
        let mut due = None;
        for (rule, matched) in self.rules.values_mut() {
            if !rule.matches(request, now) {
                continue;
            }
            let nth = *matched;
            *matched += 1;
            let hit = nth >= rule.skip && rule.count.is_none_or(|count| nth - rule.skip < count);
            if hit && due.is_none() {
                due = Some(rule.effect.clone());
            }
        }
        if let Some(Effect::Gone(reason)) = &due {
            self.gone = Some(reason.clone());
        }
        self.hits += u64::from(due.is_some());
        due
    }
}

/// The rules of a [`Fault`] filter. Clones are the same rules.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

impl Faults {
    /// Adds a rule after those that are there. It counts requests from now on.
    pub fn add(&self, rule: FaultRule) -> RuleId {
        let mut state = self.0.lock();
        let id = RuleId(state.next_id);
        state.next_id += 1;
        state.rules.insert(id, (rule, 0));
        id
    }

    /// Removes a rule; false if it was removed before.
    pub fn remove(&self, id: RuleId) -> bool {
        self.0.lock().rules.remove(&id).is_some()
    }

    /// Removes all rules. A device that is gone stays gone.
    pub fn clear(&self) {
        self.0.lock().rules.clear();
    }

    /// Makes the device vanish now.
    pub fn take_away(&self, reason: impl Into<String>) {
        self.0.lock().gone = Some(reason.into());
    }

    /// Requests that a rule has decided, since the beginning.
    pub fn hits(&self) -> u64 {
        self.0.lock().hits
    }
}

/// Passes requests on, except those that a rule is for.
pub struct Fault {
    next: Arc<dyn BlockDevice>,
    faults: Faults,
}

impl Fault {
    /// A filter without rules.
    pub fn new(next: Arc<dyn BlockDevice>) -> Self {
        Fault { next, faults: Faults::default() }
    }

    /// The rules, to be changed at any time.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    fn apply(&self, effect: Effect, request: Request, info: DeviceInfo) -> Completion {
        let (op, offset) = (request.op(), request.range().map_or(0, |(at, _)| at));
        let device = info.name.clone();
        let io = move |reason| BlockError::Io { device, op, offset, reason };
        match effect {
            Effect::Fail(reason) => Completion::ready(Err(io(reason))),
            Effect::FailAfter(reason) => self.next.submit(request).map(move |_| Err(io(reason))),
            Effect::Torn(bytes) => self.torn(bytes, request, &info, io),
            Effect::Lost => match request {
                Request::Read { .. } => self.next.submit(request),
                _ => Completion::ready(Ok(Bytes::new())),
            },
            Effect::Misdirected => self.next.submit(beside(request, info.size)),
            Effect::Corrupt => match request {
                Request::Read { .. } => {
                    let block = info.logical_block as usize;
                    self.next.submit(request).map(move |r| r.map(|b| corrupt(&b, block)))
                }
                _ => self.next.submit(request),
            },
            Effect::Delay(time) => delayed(self.next.submit(request), now() + time),
            Effect::Gone(reason) => {
                Completion::ready(Err(BlockError::Gone { device: info.name, reason }))
            }
        }
    }

    fn torn(
        &self,
        bytes: u64,
        request: Request,
        info: &DeviceInfo,
        io: impl FnOnce(String) -> BlockError + Send + 'static,
    ) -> Completion {
        let Request::Write { offset, data, fua } = request else {
            return Completion::ready(Err(io("injected error".into())));
        };
        let len = bytes.min(data.len() as u64);
        let len = len - len % u64::from(info.logical_block);
        let reason = format!("only {len} of {} bytes were written", data.len());
        if len == 0 {
            return Completion::ready(Err(io(reason)));
        }
        let data: Payload = data.slice(0, len as usize);
        let first = self.next.submit(Request::Write { offset, data, fua });
        first.map(move |_| Err(io(reason)))
    }
}

impl BlockDevice for Fault {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        let info = self.next.info();
        if let Err(refused) = check(&info, &request) {
            return Completion::ready(Err(refused));
        }
        let effect = {
            let mut state = self.faults.0.lock();
            match state.gone.clone() {
                Some(reason) => Some(Effect::Gone(reason)),
                None => state.effect(&request),
            }
        };
        match effect {
            None => self.next.submit(request),
            Some(effect) => self.apply(effect, request, info),
        }
    }
}

/// A write of as many bytes beside its place; others as they are.
fn beside(request: Request, size: u64) -> Request {
    let Request::Write { offset, data, fua } = request else { return request };
    let (len, behind) = (data.len() as u64, offset + data.len() as u64);
    let offset = if behind + len <= size { behind } else { offset.saturating_sub(len) };
    Request::Write { offset, data, fua }
}

fn delayed(first: Completion, earliest: Nanos) -> Completion {
    Completion::on_task("delayed answer", move || {
        let answer = first.wait();
        sleep_until(earliest);
        answer
    })
}

fn corrupt(good: &Bytes, block: usize) -> Bytes {
    let mut bad = good.to_vec();
    for (i, block) in bad.chunks_mut(block).enumerate() {
        let at = i * 37 % block.len();
        block[at] ^= 1 << (i % 8);
    }
    bad.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Ram;
    use steadfast_block::{conformance, pattern};
    use steadfast_runtime::Sim;

    fn fixture() -> (Fault, Faults, Ram) {
        let ram = Ram::new("ram0", 1 << 20);
        let fault = Fault::new(Arc::new(ram.clone()));
        let faults = fault.faults();
        (fault, faults, ram)
    }

    fn fail() -> Effect {
        Effect::Fail("injected".into())
    }

    fn data(tag: u64, len: usize) -> Payload {
        pattern::bytes(tag, 0, len).into()
    }

    #[test]
    fn conforms_without_rules_and_with_delays() {
        let make = || -> Arc<dyn BlockDevice> { Arc::new(fixture().0) };
        conformance::run(&make);
        let slow = || -> Arc<dyn BlockDevice> {
            let (fault, faults, _) = fixture();
            let delay = |us| Effect::Delay(Duration::from_micros(us));
            faults.add(FaultRule::new(Ops::READ, delay(30)));
            faults.add(FaultRule { count: Some(1000), ..FaultRule::new(Ops::WRITE, delay(170)) });
            Arc::new(fault)
        };
        Sim::new(1).run(move || conformance::run(&slow)).unwrap();
    }

    #[test]
    fn the_nth_and_the_range_and_the_time() {
        let (fault, faults, _) = fixture();
        let id = faults.add(FaultRule::new(Ops::WRITE | Ops::FLUSH, fail()).nth(3));
        fault.write(0, data(1, 512)).unwrap();
        fault.read(0, 512).unwrap();
        fault.flush().unwrap();
        let error = fault.write(512, data(1, 512)).unwrap_err();
        assert_eq!(error.to_string(), "ram0: write at byte 512 failed: injected");
        fault.write(512, data(1, 512)).unwrap();
        assert!(faults.remove(id) && !faults.remove(id));

        faults.add(FaultRule::new(Ops::ALL, fail()).within(4096..4097));
        assert!(fault.read(0, 4096).is_ok() && fault.read(4608, 512).is_ok());
        assert!(fault.flush().is_ok());
        assert!(fault.read(0, 8192).is_err() && fault.discard(4096, 512).is_err());
        assert_eq!(faults.hits(), 3);
        faults.clear();

        let sim = Sim::new(1).run(|| {
            let (fault, faults, _) = fixture();
            faults.add(FaultRule::new(Ops::ALL, Effect::Gone("unplugged".into())).from(Nanos(500)));
            let early = fault.flush();
            sleep_until(Nanos(500));
            (early, fault.flush().unwrap_err().to_string())
        });
        assert_eq!(sim, Ok((Ok(()), "ram0: is gone: unplugged".into())));
    }

    #[test]
    fn torn_lost_and_wrong_bytes() {
        let (fault, faults, ram) = fixture();
        fault.write(0, data(1, 4096)).unwrap();
        faults.add(FaultRule::new(Ops::WRITE, Effect::Torn(1100)).nth(1));
        faults.add(FaultRule::new(Ops::WRITE, Effect::Lost).nth(2));
        faults.add(FaultRule::new(Ops::READ, Effect::Corrupt).nth(1));
        faults.add(FaultRule::new(Ops::DISCARD, Effect::FailAfter("late".into())));
        assert!(fault.write(0, data(2, 4096)).is_err());
        let mut want = pattern::bytes(1, 0, 4096).to_vec();
        want[..1024].copy_from_slice(&pattern::bytes(2, 0, 1024));
        assert_eq!(ram.read(0, 4096).unwrap(), want);
        fault.write(0, data(3, 4096)).unwrap();
        assert_eq!(ram.read(0, 4096).unwrap(), want);
        let bad = fault.read(0, 4096).unwrap();
        let turned: u32 = bad.iter().zip(&want).map(|(b, w)| (b ^ w).count_ones()).sum();
        assert_eq!(turned, 8);
        assert_eq!(fault.read(0, 4096).unwrap(), want);
        assert!(fault.discard(0, 512).is_err());
        assert_eq!(ram.read(0, 512).unwrap(), vec![0; 512]);
    }

    #[test]
    fn a_misdirected_write_is_beside_its_place() {
        let (fault, faults, ram) = fixture();
        let end = ram.info().size - 4096;
        for at in [0, end] {
            fault.write(at, data(at + 1, 4096)).unwrap();
        }
        faults.add(FaultRule::new(Ops::ALL, Effect::Misdirected));
        for (at, lands) in [(0, 4096), (end, end - 4096)] {
            fault.write(at, data(2, 4096)).unwrap();
            assert_eq!(fault.read(at, 4096).unwrap(), pattern::bytes(at + 1, 0, 4096));
            assert_eq!(ram.read(lands, 4096).unwrap(), pattern::bytes(2, 0, 4096));
        }
    }

    #[test]
    fn a_device_vanishes_by_a_rule_or_when_it_is_taken_away() {
        let (fault, faults, _) = fixture();
        faults.add(FaultRule::new(Ops::WRITE, Effect::Gone("cable".into())).nth(2));
        fault.write(0, data(1, 512)).unwrap();
        assert!(matches!(fault.write(0, data(2, 512)), Err(BlockError::Gone { .. })));
        assert!(matches!(fault.read(0, 512), Err(BlockError::Gone { .. })));
        assert!(matches!(fault.flush(), Err(BlockError::Gone { .. })));
        let (fault, faults, _) = fixture();
        faults.take_away("thief");
        assert_eq!(fault.flush().unwrap_err().to_string(), "ram0: is gone: thief");
    }
}
