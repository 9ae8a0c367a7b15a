//! The drive: queue, arm, cache, and the choice of the next command.
//!
//! A command is *ready* one controller overhead after its arrival. A ready read that hits the cache
//! is sent over the link at once. A ready write goes into the buffer if there is a write cache.
//! Everything else waits for the arm. Whenever the arm is free and a command has become ready, the
//! queue policy chooses. While nothing waits, the arm continues to read after the last read, until
//! a segment of the cache is full.

use std::collections::VecDeque;
use std::ops::Range;

use steadfast_block::rng::Rng;
use steadfast_runtime::random_u64;

use super::geometry::Track;
use super::mechanics::{Mechanics, Transfer};
use super::params::{HddParams, QueuePolicy, WriteCacheMode};
use super::read_cache::ReadCache;
use super::write_buffer::WriteBuffer;
use crate::model::ModelError;
use crate::model::agenda::Agenda;
use crate::model::engine::{Command, CommandCompletion, CommandKind, Physics};
use crate::model::units::{kib, ms, transfer_ns};

const SECTOR: u64 = 512;

/// How many of the buffered runs the drive weighs against each other when it picks the next to
/// write out: the oldest ones.
const RUNS_WEIGHED: usize = 128;

/// A command that waits: for its overhead, for the arm, or for space in the write buffer.
#[derive(Debug, Clone)]
struct PendingCommand {
    command: Command,
    sectors: Range<u64>,
    arrived_ns: u64,
    /// When the last byte of a write will have come over the link; when the first of a read may
    /// go out over it.
    data_ns: u64,
}

impl PendingCommand {
    fn writes(&self) -> bool {
        matches!(self.command.op, CommandKind::Write { .. })
    }
}

/// Something decided that will happen by itself.
#[derive(Debug)]
enum HostEvent {
    /// The answer is with the host.
    Answered(u64),
    /// A write is in the buffer, and the host gets its completion.
    Buffered { id: u64, sectors: Range<u64> },
}

/// Whose transfer the arm is making.
#[derive(Debug)]
enum TransferPurpose {
    Host { waiting: PendingCommand, segment: Option<u64> },
    Buffer,
}

/// Reading on after a read: from the next sector that is not in the cache yet, up to a limit.
#[derive(Debug, Clone, Copy)]
struct LookAhead {
    next: Transfer,
    until: u64,
    segment: u64,
}

#[derive(Debug)]
enum ArmState {
    Nothing,
    LookAhead(LookAhead),
    Transfer { transfer: Transfer, sectors: u64, ends_ns: u64, purpose: TransferPurpose },
}

/// A flush that waits until everything up to `covers` is on the medium.
#[derive(Debug)]
struct QueuedFlush {
    id: u64,
    covers: u64,
}

/// What the arm could do next.
#[derive(Debug, Clone, Copy)]
enum Choice {
    Queued(usize),
    Buffered(usize),
}

#[derive(Debug)]
pub struct Drive {
    p: HddParams,
    mechanics: Mechanics,
    arriving: VecDeque<PendingCommand>,
    queue: Vec<PendingCommand>,
    /// Writes that found the buffer full, in order.
    for_space: VecDeque<PendingCommand>,
    flushes: Vec<QueuedFlush>,
    cache: ReadCache,
    buffer: WriteBuffer,
    host_events: Agenda<HostEvent>,
    arm_state: ArmState,
    track: Track,
    /// Whether the last transfer was out of the buffer.
    wrote_out: bool,
    /// Decides how long each seek really takes. In a simulation its seed follows from that of the
    /// simulation, so another seed is another run of the same drive.
    luck: Rng,
    link_in_free_ns: u64,
    link_out_free_ns: u64,
}

impl Drive {
    #[cfg(test)]
    pub(super) fn sectors_per_track(&self, sector: u64) -> u64 {
        self.mechanics.geometry.locate(sector).sectors_per_track.into()
    }

    #[cfg(test)]
    pub(super) fn runs_buffered(&self) -> usize {
        self.buffer.waiting().len()
    }

    fn arm_is_free(&self) -> bool {
        !matches!(self.arm_state, ArmState::Transfer { .. })
    }

    /// A command has been decoded.
    fn become_ready(&mut self, at: u64, mut w: PendingCommand) {
        let id = w.command.id;
        match w.command.op {
            // Nothing to do on a disk that does not know which sectors are in use.
            CommandKind::Discard => self.host_events.enter(at, HostEvent::Answered(id)),
            CommandKind::Flush => self.flush(at, id),
            CommandKind::Read => {
                if !self.answer_from_cache(at, &w) {
                    self.queue.push(w);
                }
            }
            CommandKind::Write { fua } => {
                let lying = self.p.write_cache == WriteCacheMode::Lying;
                let buffered = self.p.write_cache != WriteCacheMode::Off
                    && (!fua || lying)
                    && self.buffer.can_hold(w.sectors.end - w.sectors.start);
                if buffered {
                    self.for_space.push_back(w);
                    self.fill_buffer(at);
                } else {
                    w.data_ns = self.receive(at, w.command.len);
                    self.queue.push(w);
                }
            }
        }
    }

    fn flush(&mut self, at: u64, id: u64) {
        let covers = self.buffer.completed();
        if self.p.write_cache == WriteCacheMode::Lying || self.buffer.is_durable(covers) {
            self.host_events.enter(at, HostEvent::Answered(id));
        } else {
            self.flushes.push(QueuedFlush { id, covers });
        }
    }

    /// When `len` bytes from the host will have come, if they are asked for at `at`.
    fn receive(&mut self, at: u64, len: u64) -> u64 {
        self.link_in_free_ns =
            self.link_in_free_ns.max(at) + transfer_ns(len, self.p.interface_mb_per_s);
        self.link_in_free_ns
    }

    /// Sends the data of a read that could begin at `from` and is complete in the drive at `at`.
    fn send(&mut self, from: u64, at: u64, w: &PendingCommand) {
        let link =
            self.link_out_free_ns.max(from) + transfer_ns(w.command.len, self.p.interface_mb_per_s);
        self.link_out_free_ns = link.max(at);
        self.host_events.enter(self.link_out_free_ns, HostEvent::Answered(w.command.id));
    }

    fn answer_from_cache(&mut self, at: u64, w: &PendingCommand) -> bool {
        self.note_look_ahead(at);
        let cached = self.cache.missing_from(&w.sectors) == w.sectors.end;
        if !cached && !self.buffer.holds(&w.sectors) {
            return false;
        }
        if let Some(segment) = self.cache.touch(&w.sectors) {
            self.extend_look_ahead(at, segment, w.sectors.end);
        }
        self.send(at, at, w);
        true
    }

    /// Lets writes that wait for space into the buffer, in order, while there is space.
    fn fill_buffer(&mut self, at: u64) {
        while let Some(w) = self.for_space.front() {
            if !self.buffer.take(w.sectors.end - w.sectors.start) {
                return;
            }
            // OK to unwrap: it was just there.
            let w = self.for_space.pop_front().unwrap();
            self.forget_cached(at, &w.sectors);
            let received = self.receive(at, w.command.len);
            let id = w.command.id;
            self.host_events.enter(received, HostEvent::Buffered { id, sectors: w.sectors });
        }
    }

    fn happen(&mut self, at: u64, what: HostEvent, done: &mut Vec<CommandCompletion>) {
        match what {
            HostEvent::Answered(id) => done.push(CommandCompletion::well(id)),
            HostEvent::Buffered { id, sectors } => {
                self.buffer.accept(sectors, at);
                done.push(CommandCompletion::well(id));
            }
        }
    }

    /// The transfer that the arm was making is complete.
    fn finish_transfer(&mut self, at: u64) {
        let arm_state = std::mem::replace(&mut self.arm_state, ArmState::Nothing);
        let ArmState::Transfer { transfer, sectors, purpose, .. } = arm_state else { return };
        let end = transfer.sector + sectors;
        self.track = self.mechanics.finish(transfer, sectors).1;
        match purpose {
            TransferPurpose::Buffer => {
                self.buffer.finish();
                self.fill_buffer(at);
                self.finish_flushes(at);
            }
            TransferPurpose::Host { waiting, segment: Some(segment) } => {
                self.cache.fill(segment, end);
                self.send(waiting.data_ns, at, &waiting);
                self.look_ahead(at, end, segment);
            }
            TransferPurpose::Host { waiting, segment: None } => {
                self.host_events.enter(at, HostEvent::Answered(waiting.command.id));
            }
        }
    }

    fn finish_flushes(&mut self, at: u64) {
        let (buffer, host_events) = (&self.buffer, &mut self.host_events);
        self.flushes.retain(|flush| {
            let durable = buffer.is_durable(flush.covers);
            if durable {
                host_events.enter(at, HostEvent::Answered(flush.id));
            }
            !durable
        });
    }

    fn look_ahead(&mut self, at: u64, sector: u64, segment: u64) {
        let until = self.look_ahead_limit(sector);
        if self.p.look_ahead && sector < until {
            let start_ns = self.mechanics.reach(at, self.track, sector, false);
            let next = Transfer { start_ns, sector, writes: false };
            self.arm_state = ArmState::LookAhead(LookAhead { next, until, segment });
        }
    }

    /// How far to read ahead of a host that has asked for all up to `asked`: more would push what
    /// it asks for next out of the segment.
    fn look_ahead_limit(&self, asked: u64) -> u64 {
        (asked + self.cache.segment_sectors()).min(self.p.sectors)
    }

    /// The host has been given all up to `asked` from a segment. If it is the one being filled,
    /// the arm may go on for longer; if it had stopped, it has to wait for the platter again.
    fn extend_look_ahead(&mut self, at: u64, segment: u64, asked: u64) {
        let limit = self.look_ahead_limit(asked);
        let ArmState::LookAhead(l) = &mut self.arm_state else { return };
        if l.segment != segment || limit <= l.until {
            return;
        }
        if l.next.sector == l.until {
            l.next.start_ns = self.mechanics.reach(at, self.track, l.next.sector, false);
        }
        l.until = limit;
    }

    /// Enters into the cache what the look-ahead has read by now, and returns its next sector.
    fn note_look_ahead(&mut self, at: u64) -> Option<u64> {
        let ArmState::LookAhead(l) = &mut self.arm_state else { return None };
        if l.next.sector == l.until {
            return None;
        }
        let mechanics = &self.mechanics;
        let (read, track) = mechanics.progress(l.next, l.until - l.next.sector, at);
        self.track = track;
        if read > 0 {
            let (ended_ns, on) = mechanics.finish(l.next, read);
            l.next.sector += read;
            self.cache.fill(l.segment, l.next.sector);
            if l.next.sector < l.until {
                l.next.start_ns = mechanics.reach(ended_ns, on, l.next.sector, false);
            }
        }
        (l.next.sector < l.until).then_some(l.next.sector)
    }

    /// The cached copies of what is being written are void; a look-ahead over them stops.
    fn forget_cached(&mut self, at: u64, written: &Range<u64>) {
        self.note_look_ahead(at);
        let over = |l: &LookAhead| l.next.sector < written.end && written.start < l.until;
        if matches!(&self.arm_state, ArmState::LookAhead(l) if over(l)) {
            self.arm_state = ArmState::Nothing;
        }
        self.cache.forget(written);
    }

    /// Gives the free arm something to do.
    fn dispatch(&mut self, at: u64) {
        let next = self.note_look_ahead(at);
        let mut i = 0;
        while i < self.queue.len() {
            let hit = !self.queue[i].writes() && {
                let w = self.queue[i].clone();
                self.answer_from_cache(at, &w)
            };
            if hit {
                self.queue.remove(i);
            } else {
                i += 1;
            }
        }
        match self.choose(at, next) {
            None => {}
            Some(Choice::Queued(i)) => {
                let waiting = self.queue.remove(i);
                self.begin(at, next, waiting);
            }
            Some(Choice::Buffered(i)) => {
                let sectors = self.buffer.begin(i);
                let start_ns = self.arrive(at, sectors.start, true);
                self.transfer(start_ns, sectors, 0, TransferPurpose::Buffer);
            }
        }
    }

    /// Aged runs of the buffer get every second turn, then come aged commands, then all; within
    /// each the policy decides. A limit on age so cuts off starvation without giving up the
    /// policy when everything is old.
    fn choose(&self, at: u64, next: Option<u64>) -> Option<Choice> {
        let aged = |since: u64| at.saturating_sub(since) > ms(self.p.queue_age_limit_ms);
        let queued = (0..self.queue.len()).map(|i| (Choice::Queued(i), self.queue[i].arrived_ns));
        let queued: Vec<_> = queued.collect();
        let runs: Vec<_> = self.runs_to_write_out(at).collect();
        let old = |choices: &[(Choice, u64)]| -> Vec<_> {
            choices.iter().copied().filter(|(_, since)| aged(*since)).collect()
        };
        let old_runs = if self.wrote_out { Vec::new() } else { old(&runs) };
        let all = [queued.as_slice(), &runs].concat();
        let candidates = [old_runs, old(&queued), all].into_iter().find(|c| !c.is_empty())?;
        let order = |(choice, since): &(Choice, u64)| match self.p.queue_policy {
            QueuePolicy::Fifo => *since,
            QueuePolicy::Sptf => self.positioned_at(at, next, *choice),
        };
        // The first of several that are equally near.
        candidates.iter().min_by_key(|c| order(c)).map(|(choice, _)| *choice)
    }

    fn must_write_out(&self) -> bool {
        self.buffer.is_crowded() || !self.flushes.is_empty() || !self.for_space.is_empty()
    }

    /// The buffered runs to consider now, with how long each waits: all if there is nothing else
    /// to do or space is short, otherwise those that have waited too long. While a flush waits,
    /// only those that it waits for, or newer ones could put it off for ever.
    fn runs_to_write_out(&self, at: u64) -> impl Iterator<Item = (Choice, u64)> {
        let all = self.queue.is_empty() || self.must_write_out();
        let limit = self.flushes.first().map_or(u64::MAX, |flush| flush.covers);
        let runs = self.buffer.waiting().iter().enumerate();
        runs.filter(move |(_, run)| {
            let aged = at.saturating_sub(run.since_ns) > ms(self.p.queue_age_limit_ms);
            run.sequence <= limit && (all || aged)
        })
        .map(|(i, run)| (Choice::Buffered(i), run.since_ns))
        .take(RUNS_WEIGHED)
    }

    /// When the head could begin with a choice.
    fn positioned_at(&self, at: u64, next: Option<u64>, choice: Choice) -> u64 {
        let (sector, writes) = match choice {
            Choice::Buffered(i) => (self.buffer.waiting()[i].sectors.start, true),
            Choice::Queued(i) => {
                let w = &self.queue[i];
                if w.writes() {
                    (w.sectors.start, true)
                } else {
                    (self.cache.missing_from(&w.sectors), false)
                }
            }
        };
        if !writes && next == Some(sector) {
            return at;
        }
        self.mechanics.reach(at, self.track, sector, writes)
    }

    /// When the head really is at `sector`: the arm may take longer or shorter than the curve.
    fn arrive(&mut self, at: u64, sector: u64, writes: bool) -> u64 {
        let mechanics = &self.mechanics;
        let variation = ms(self.p.seek_variation_ms);
        if variation == 0 || mechanics.geometry.locate(sector).track == self.track {
            return mechanics.reach(at, self.track, sector, writes);
        }
        // No seek is shorter than the variation (the parameters' check), so none ends early.
        let began = (at + self.luck.below(2 * variation + 1)).saturating_sub(variation);
        mechanics.reach(began, self.track, sector, writes)
    }

    /// Begins the transfer of a queued command, at the first sector that is not cached.
    fn begin(&mut self, at: u64, next: Option<u64>, mut w: PendingCommand) {
        if w.writes() {
            self.forget_cached(at, &w.sectors);
            let start_ns = self.arrive(at, w.sectors.start, true);
            let (sectors, data_ns) = (w.sectors.clone(), w.data_ns);
            self.transfer(
                start_ns,
                sectors,
                data_ns,
                TransferPurpose::Host { waiting: w, segment: None },
            );
            return;
        }
        let first = self.cache.missing_from(&w.sectors);
        let end = w.sectors.end;
        if let (ArmState::LookAhead(l), true) = (&self.arm_state, next == Some(first)) {
            // The head is moving over just these sectors.
            let l = *l;
            w.data_ns = at;
            let purpose = TransferPurpose::Host { waiting: w, segment: Some(l.segment) };
            self.transfer(l.next.start_ns, l.next.sector..end, 0, purpose);
            return;
        }
        let segment = self.cache.open(first);
        let start_ns = self.arrive(at, first, false);
        w.data_ns = start_ns;
        let purpose = TransferPurpose::Host { waiting: w, segment: Some(segment) };
        self.transfer(start_ns, first..end, 0, purpose);
    }

    fn transfer(
        &mut self,
        start_ns: u64,
        range: Range<u64>,
        data_ns: u64,
        purpose: TransferPurpose,
    ) {
        let writes = match &purpose {
            TransferPurpose::Buffer => true,
            TransferPurpose::Host { waiting, .. } => waiting.writes(),
        };
        self.wrote_out = matches!(purpose, TransferPurpose::Buffer);
        let transfer = Transfer { start_ns, sector: range.start, writes };
        let sectors = range.end - range.start;
        let (ends_ns, _) = self.mechanics.finish(transfer, sectors);
        let ends_ns = ends_ns.max(data_ns);
        self.arm_state = ArmState::Transfer { transfer, sectors, ends_ns, purpose };
    }
}

impl Physics for Drive {
    type Params = HddParams;

    const DISCARDS: bool = false;

    fn new(params: &HddParams) -> Result<Self, ModelError> {
        let cache_sectors = kib(params.read_cache_kb) / SECTOR;
        let segment_sectors = cache_sectors / u64::from(params.read_segments);
        Ok(Drive {
            mechanics: Mechanics::new(params)?,
            arriving: VecDeque::new(),
            queue: Vec::new(),
            for_space: VecDeque::new(),
            flushes: Vec::new(),
            cache: ReadCache::new(params.read_segments as usize, segment_sectors),
            buffer: WriteBuffer::new(kib(params.write_buffer_kb) / SECTOR),
            host_events: Agenda::default(),
            arm_state: ArmState::Nothing,
            track: Track { cylinder: 0, head: 0 },
            wrote_out: false,
            luck: Rng::new(random_u64()),
            link_in_free_ns: 0,
            link_out_free_ns: 0,
            p: params.clone(),
        })
    }

    fn queue_depth(params: &HddParams) -> u32 {
        params.queue_depth
    }

    fn arrive(&mut self, at_ns: u64, command: Command) -> Option<u64> {
        let sectors = command.offset / SECTOR..(command.offset + command.len) / SECTOR;
        self.arriving.push_back(PendingCommand { command, sectors, arrived_ns: at_ns, data_ns: 0 });
        None
    }

    fn next_event(&self) -> Option<u64> {
        let ready = self.arriving.front().map(|w| w.arrived_ns + ms(self.p.controller_overhead_ms));
        let ends = match &self.arm_state {
            ArmState::Transfer { ends_ns, .. } => Some(*ends_ns),
            _ => None,
        };
        [ready, ends, self.host_events.next()].into_iter().flatten().min()
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<CommandCompletion>) {
        while let Some(at) = self.next_event().filter(|at| *at <= until_ns) {
            while let Some((_, what)) = self.host_events.take_due(at) {
                self.happen(at, what, done);
            }
            if matches!(&self.arm_state, ArmState::Transfer { ends_ns, .. } if *ends_ns <= at) {
                self.finish_transfer(at);
            }
            while self
                .arriving
                .front()
                .is_some_and(|w| w.arrived_ns + ms(self.p.controller_overhead_ms) <= at)
            {
                // OK to unwrap: it was just there.
                let w = self.arriving.pop_front().unwrap();
                self.become_ready(at, w);
            }
            if self.arm_is_free() {
                self.dispatch(at);
            }
        }
    }
}
