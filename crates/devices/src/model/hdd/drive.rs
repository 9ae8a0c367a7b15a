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

use super::access::{Arrival, read_by, sent};
use super::geometry::Track;
use super::mechanics::{Mechanics, Piece, Transfer};
use super::overhead::{Controller, LastCommand, Timing};
use super::params::{HddParams, QueuePolicy, WriteCacheMode};
use super::read_cache::ReadCache;
use super::write_buffer::WriteBuffer;
use crate::model::ModelError;
use crate::model::agenda::Agenda;
use crate::model::engine::{Command, CommandCompletion, CommandKind, Physics};
use crate::model::units::{kib, ms, transfer_ns};

mod look_ahead;

use look_ahead::LookAhead;

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
    timing: Timing,
    /// The data of a write that is not buffered.
    data: Option<Arrival>,
}

impl PendingCommand {
    fn writes(&self) -> bool {
        matches!(self.command.op, CommandKind::Write { .. })
    }

    fn len(&self) -> u64 {
        self.sectors.end - self.sectors.start
    }

    fn answer(&self) -> Answer {
        let last = match self.command.op {
            CommandKind::Read => Some(LastCommand::Read),
            CommandKind::Write { .. } => Some(LastCommand::Write(self.sectors.end)),
            CommandKind::Flush | CommandKind::Discard => None,
        };
        Answer { id: self.command.id, last }
    }
}

/// The answer is with the host.
#[derive(Debug)]
struct Answer {
    id: u64,
    /// What it was, if it was a read or a write.
    last: Option<LastCommand>,
}

/// Whose transfer the arm is making.
#[derive(Debug)]
enum TransferPurpose {
    /// A read: the pieces over which the arm passes, after sectors that are in the drive.
    Read {
        waiting: PendingCommand,
        segment: u64,
        from_ns: u64,
        pieces: Vec<Piece>,
    },
    Write {
        waiting: PendingCommand,
    },
    Buffer,
}

#[derive(Debug)]
enum ArmState {
    Nothing,
    LookAhead(LookAhead),
    /// Up to a sector and the track where that leaves the head.
    Transfer {
        end: u64,
        track: Track,
        ends_ns: u64,
        purpose: TransferPurpose,
    },
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
    controller: Controller,
    arriving: VecDeque<PendingCommand>,
    queue: Vec<PendingCommand>,
    /// Writes that found the buffer full, in order.
    for_space: VecDeque<PendingCommand>,
    flushes: Vec<QueuedFlush>,
    cache: ReadCache,
    buffer: WriteBuffer,
    answers: Agenda<Answer>,
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
        match w.command.op {
            // Nothing to do on a disk that does not know which sectors are in use.
            CommandKind::Discard => self.answers.enter(at, w.answer()),
            CommandKind::Flush => self.flush(at, &w),
            CommandKind::Read => {
                if !self.answer_from_cache(at, &w) {
                    self.queue.push(w);
                }
            }
            CommandKind::Write { fua } => {
                let lying = self.p.write_cache == WriteCacheMode::Lying;
                let buffered = self.p.write_cache != WriteCacheMode::Off
                    && (!fua || lying)
                    && self.buffer.can_hold(w.len());
                if buffered {
                    self.for_space.push_back(w);
                    self.fill_buffer(at);
                } else {
                    w.data = Some(self.receive(at, &w));
                    self.queue.push(w);
                }
            }
        }
    }

    fn flush(&mut self, at: u64, w: &PendingCommand) {
        let covers = self.buffer.completed();
        if self.p.write_cache == WriteCacheMode::Lying || self.buffer.is_durable(covers) {
            self.answers.enter(at, w.answer());
        } else {
            self.flushes.push(QueuedFlush { id: w.command.id, covers });
        }
    }

    /// When the sectors of a write will have come from the host, which may send them at `at`.
    fn receive(&mut self, at: u64, w: &PendingCommand) -> Arrival {
        let from = self.link_in_free_ns.max(at).max(w.timing.ready_ns + w.timing.data_ns);
        let rate = self.p.interface_write_mb_per_s.unwrap_or(self.p.interface_mb_per_s);
        self.link_in_free_ns = from + transfer_ns(w.command.len, rate);
        let sector_ns = SECTOR as f64 * 1e3 / rate;
        Arrival { last_ns: self.link_in_free_ns, sectors: w.len(), sector_ns }
    }

    /// Sends a read and answers it. Of it `cached` sectors were in the drive at `from_ns`, the
    /// others are read by `pieces`.
    fn send(&mut self, from_ns: u64, cached: u64, pieces: &[Piece], w: &PendingCommand) {
        let rate = self.p.interface_mb_per_s;
        // OK to cast: a share of the sectors.
        let mark = ((w.len() as f64 * self.p.read_water_mark) as u64).max(1);
        let marked = if mark <= cached { from_ns } else { read_by(pieces, mark - cached) };
        let first = self.link_out_free_ns.max(marked) + transfer_ns(cached * SECTOR, rate);
        self.link_out_free_ns = sent(first, SECTOR as f64 * 1e3 / rate, pieces);
        self.answers.enter(self.link_out_free_ns + w.timing.end_ns, w.answer());
    }

    fn answer_from_cache(&mut self, at: u64, w: &PendingCommand) -> bool {
        self.note_look_ahead(at);
        let cached = self.cache.missing_from(&w.sectors) == w.sectors.end;
        if !cached && !self.buffer.holds(&w.sectors, at) {
            return false;
        }
        if let Some(segment) = self.cache.touch(&w.sectors) {
            self.extend_look_ahead(at, segment, w.sectors.end);
        }
        self.send(at, w.len(), &[], w);
        true
    }

    /// Whether the first of some sectors is in the drive; looked at where it matters.
    fn is_begun_in_cache(&mut self, at: u64, sectors: &Range<u64>) -> bool {
        if !self.controller.looks_at_cache() {
            return false;
        }
        self.note_look_ahead(at);
        let first = sectors.start..(sectors.start + 1).min(sectors.end);
        self.cache.missing_from(&first) != first.start || self.buffer.holds(&first, at)
    }

    /// Lets writes that wait for space into the buffer, in order, while there is space. The arm may
    /// begin with them while their data come.
    fn fill_buffer(&mut self, at: u64) {
        while let Some(w) = self.for_space.front() {
            if !self.buffer.take(&w.sectors) {
                return;
            }
            // OK to unwrap: it was just there.
            let w = self.for_space.pop_front().unwrap();
            self.forget_cached(at, &w.sectors);
            let data = self.receive(at, &w);
            self.answers.enter(data.last_ns + w.timing.end_ns, w.answer());
            self.buffer.accept(w.sectors, at, data);
        }
    }

    /// The transfer that the arm was making is complete.
    fn finish_transfer(&mut self, at: u64) {
        let arm_state = std::mem::replace(&mut self.arm_state, ArmState::Nothing);
        let ArmState::Transfer { end, track, purpose, .. } = arm_state else { return };
        self.track = track;
        match purpose {
            TransferPurpose::Buffer => {
                self.buffer.finish();
                self.fill_buffer(at);
                self.finish_flushes(at);
            }
            TransferPurpose::Read { waiting, segment, from_ns, pieces } => {
                self.cache.fill(segment, end);
                let read: u64 = pieces.iter().map(|p| p.sectors).sum();
                let cached = waiting.len().saturating_sub(read);
                self.send(from_ns, cached, &pieces, &waiting);
                self.look_ahead(at, end, segment);
            }
            TransferPurpose::Write { waiting } => {
                self.answers.enter(at + waiting.timing.end_ns, waiting.answer());
            }
        }
    }

    fn finish_flushes(&mut self, at: u64) {
        let (buffer, answers) = (&self.buffer, &mut self.answers);
        self.flushes.retain(|flush| {
            let durable = buffer.is_durable(flush.covers);
            if durable {
                answers.enter(at, Answer { id: flush.id, last: None });
            }
            !durable
        });
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
                let (sectors, data) = self.buffer.begin(i);
                self.write(at, sectors, data, TransferPurpose::Buffer);
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

    /// When the arm sets out, if it is free at `at`: what makes the seek longer or shorter than
    /// the curve says is put into this.
    fn set_out(&mut self, at: u64, sector: u64) -> u64 {
        let variation = ms(self.p.seek_variation_ms);
        if variation == 0 || self.mechanics.geometry.locate(sector).track == self.track {
            return at;
        }
        // No seek is shorter than the variation (the parameters' check), so none ends early.
        (at + self.luck.below(2 * variation + 1)).saturating_sub(variation)
    }

    /// Begins the transfer of a queued command, at the first sector that is not cached.
    fn begin(&mut self, at: u64, next: Option<u64>, w: PendingCommand) {
        if let Some(data) = w.data {
            self.forget_cached(at, &w.sectors);
            self.write(at, w.sectors.clone(), data, TransferPurpose::Write { waiting: w });
            return;
        }
        let first = self.cache.missing_from(&w.sectors);
        let end = w.sectors.end;
        let goes_on = next == Some(first) && matches!(self.arm_state, ArmState::LookAhead(_));
        let (segment, pieces) = match (&self.arm_state, goes_on) {
            // The head is moving over just these sectors.
            (ArmState::LookAhead(l), true) => {
                (l.segment, self.mechanics.pieces(l.next, end - l.next.sector).collect())
            }
            _ => self.seek_and_read(at, first, end),
        };
        self.wrote_out = false;
        let (ends_ns, track) = self.passed_over(&pieces);
        let purpose = TransferPurpose::Read { waiting: w, segment, from_ns: at, pieces };
        self.arm_state = ArmState::Transfer { end, track, ends_ns, purpose };
    }

    fn seek_and_read(&mut self, at: u64, first: u64, end: u64) -> (u64, Vec<Piece>) {
        let set_out = self.set_out(at, first);
        let place = self.mechanics.geometry.locate(first);
        let landed = set_out + self.mechanics.move_time(self.track, place.track, false);
        let pieces = self.mechanics.read(set_out, self.track, (first, end), self.p.read_on_arrival);
        let segment = self.cache.open(first);
        if let (true, Some(piece)) = (self.p.keep_passed, pieces.first()) {
            let passed = piece.start_ns.saturating_sub(landed) / piece.sector_ns().max(1);
            let (track_begins, _) = self.mechanics.geometry.track_of(first);
            self.cache.extend_back(segment, first.saturating_sub(passed).max(track_begins));
        }
        (segment, pieces)
    }

    /// Begins a write whose data come as `data` says.
    fn write(&mut self, at: u64, sectors: Range<u64>, data: Arrival, purpose: TransferPurpose) {
        let set_out = self.set_out(at, sectors.start);
        let place = self.mechanics.geometry.locate(sectors.start);
        let least = ms(self.p.write_start_ms);
        let moved = self.mechanics.move_time(self.track, place.track, true).max(least);
        let begun = data.of(u64::from(self.p.write_start_sectors)) + least;
        let start_ns = self.mechanics.geometry.passes(&place, (set_out + moved).max(begun));
        let transfer = Transfer { start_ns, sector: sectors.start, writes: true };
        let len = sectors.end - sectors.start;
        let pieces = self.mechanics.write(transfer, len, data);
        self.wrote_out = matches!(purpose, TransferPurpose::Buffer);
        let (end, (ends_ns, track)) = (sectors.end, self.passed_over(&pieces));
        self.arm_state = ArmState::Transfer { end, track, ends_ns, purpose };
    }

    /// When the head has passed over the last of `pieces`, and where it then is.
    fn passed_over(&self, pieces: &[Piece]) -> (u64, Track) {
        let ends_ns = pieces.iter().map(|p| p.end_ns).max().unwrap_or(0);
        (ends_ns, pieces.last().map_or(self.track, |p| p.track))
    }
}

impl Physics for Drive {
    type Params = HddParams;

    const DISCARDS: bool = false;

    fn new(params: &HddParams) -> Result<Self, ModelError> {
        let cache_sectors = kib(params.read_cache_kb) / SECTOR;
        let equal = cache_sectors / u64::from(params.read_segments);
        let segment_sectors = params.segment_sectors.map_or(equal, u64::from);
        Ok(Drive {
            mechanics: Mechanics::new(params)?,
            controller: Controller::new(params),
            arriving: VecDeque::new(),
            queue: Vec::new(),
            for_space: VecDeque::new(),
            flushes: Vec::new(),
            cache: ReadCache::new(params.read_segments as usize, segment_sectors),
            buffer: WriteBuffer::new(kib(params.write_buffer_kb) / SECTOR, params.write_runs),
            answers: Agenda::default(),
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
        let timing = match command.op {
            CommandKind::Read => {
                let is_cached = self.is_begun_in_cache(at_ns, &sectors);
                self.controller.read(at_ns, is_cached)
            }
            CommandKind::Write { .. } => self.controller.write(at_ns, sectors.start),
            CommandKind::Flush | CommandKind::Discard => self.controller.other(at_ns),
        };
        let w = PendingCommand { command, sectors, arrived_ns: at_ns, timing, data: None };
        let behind = self.arriving.partition_point(|w| w.timing.ready_ns <= timing.ready_ns);
        self.arriving.insert(behind, w);
        None
    }

    fn next_event(&self) -> Option<u64> {
        let ready = self.arriving.front().map(|w| w.timing.ready_ns);
        let ends = match &self.arm_state {
            ArmState::Transfer { ends_ns, .. } => Some(*ends_ns),
            _ => None,
        };
        [ready, ends, self.answers.next()].into_iter().flatten().min()
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<CommandCompletion>) {
        while let Some(at) = self.next_event().filter(|at| *at <= until_ns) {
            while let Some((_, answer)) = self.answers.take_due(at) {
                self.controller.last = answer.last.unwrap_or(self.controller.last);
                done.push(CommandCompletion::well(answer.id));
            }
            if matches!(&self.arm_state, ArmState::Transfer { ends_ns, .. } if *ends_ns <= at) {
                self.finish_transfer(at);
            }
            while self.arriving.front().is_some_and(|w| w.timing.ready_ns <= at) {
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
