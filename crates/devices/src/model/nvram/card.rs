//! The card: its DMA engine, and which of its memory was ever written.

use std::collections::VecDeque;

use steadfast_block::{DeviceInfo, Persistence};

use super::params::NvramParams;
use crate::model::engine::{Command, CommandCompletion, CommandKind, Physics};
use crate::model::units::{mib, us};
use crate::model::{Battery, ModelError};
use crate::store::Store;

const SECTOR: u64 = 512;

/// A request of which some descriptors have not been put into a chain.
#[derive(Debug)]
struct NvramRequest {
    command: Command,
    left: u64,
}

/// What the DMA engine works on.
#[derive(Debug)]
struct Chain {
    answered_ns: u64,
    /// Requests whose last descriptor is in this chain.
    finishes: Vec<Command>,
}

#[derive(Debug)]
pub struct Card {
    p: NvramParams,
    pub(super) batteries: [Battery; 2],
    queue: VecDeque<NvramRequest>,
    chain: Option<Chain>,
    /// A bit for each sector that was never written, and how many there are.
    unwritten: Vec<u64>,
    unwritten_count: u64,
}

impl NvramParams {
    /// Nanoseconds that one descriptor of `bytes` takes.
    fn descriptor_time(&self, bytes: u64) -> u64 {
        let clocks = bytes.div_ceil(u64::from(self.bus_width_bits / 8))
            + bytes.div_ceil(self.burst_bytes.into()) * u64::from(self.burst_overhead_clocks);
        (clocks as f64 * (1e3 / self.bus_clock_mhz)).round() as u64
            + us(self.descriptor_overhead_us)
    }
}

impl Card {
    fn is_initialised(&self) -> bool {
        self.unwritten_count == 0
    }

    fn first_unwritten(&self, offset: u64, len: u64) -> Option<u64> {
        if self.is_initialised() {
            return None;
        }
        let mut sectors = offset / SECTOR..(offset + len) / SECTOR;
        sectors.find(|s| self.unwritten[(s / 64) as usize] & 1 << (s % 64) != 0)
    }

    fn note_written(&mut self, offset: u64, len: u64) {
        if self.is_initialised() {
            return;
        }
        for s in offset / SECTOR..(offset + len) / SECTOR {
            let word = &mut self.unwritten[(s / 64) as usize];
            self.unwritten_count -= *word >> (s % 64) & 1;
            *word &= !(1 << (s % 64));
        }
    }

    /// Fills a chain from the queue and starts the engine on it.
    fn start(&mut self, at: u64) {
        let mut room = self.p.chain_descriptors;
        let mut busy_ns = 0;
        let mut finishes = Vec::new();
        while let Some(q) = self.queue.front_mut() {
            while q.left > 0 && room > 0 {
                let bytes = q.left.min(self.p.descriptor_bytes.into());
                busy_ns += self.p.descriptor_time(bytes);
                q.left -= bytes;
                room -= 1;
            }
            if q.left > 0 {
                break;
            }
            finishes.push(q.command);
            self.queue.pop_front();
        }
        if busy_ns > 0 || !finishes.is_empty() {
            // A chain of commands that move nothing (flush, discard) is none: no interrupt.
            let interrupt_ns = if busy_ns > 0 { us(self.p.interrupt_us) } else { 0 };
            self.chain = Some(Chain { answered_ns: at + busy_ns + interrupt_ns, finishes });
        }
    }

    fn finish(&mut self, command: Command) -> CommandCompletion {
        let Command { id, op, offset, len } = command;
        if let CommandKind::Write { .. } = op {
            self.note_written(offset, len);
        }
        let bad = if op == CommandKind::Read { self.first_unwritten(offset, len) } else { None };
        let fault = bad.map(|sector| {
            format!(
                "uncorrectable ECC error in sector {sector}: the card was never initialised; \
                 write all of it once"
            )
        });
        CommandCompletion { id, fault }
    }
}

impl Physics for Card {
    type Params = NvramParams;

    const DISCARDS: bool = false;

    fn new(params: &NvramParams) -> Result<Self, ModelError> {
        let sectors = mib(params.size_mib) / SECTOR;
        let unwritten_count = if params.initialised { 0 } else { sectors };
        Ok(Card {
            p: params.clone(),
            batteries: params.batteries,
            queue: VecDeque::new(),
            chain: None,
            unwritten: vec![u64::MAX; unwritten_count.div_ceil(64) as usize],
            unwritten_count,
        })
    }

    fn queue_depth(params: &NvramParams) -> u32 {
        params.queue_depth
    }

    fn arrive(&mut self, at_ns: u64, command: Command) -> Option<u64> {
        let left = match command.op {
            CommandKind::Read | CommandKind::Write { .. } => command.len,
            CommandKind::Flush | CommandKind::Discard => 0,
        };
        self.queue.push_back(NvramRequest { command, left });
        if self.chain.is_none() {
            self.start(at_ns);
        }
        None
    }

    fn next_event(&self) -> Option<u64> {
        self.chain.as_ref().map(|chain| chain.answered_ns)
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<CommandCompletion>) {
        while let Some(chain) = self.chain.take_if(|chain| chain.answered_ns <= until_ns) {
            for command in chain.finishes {
                let answer = self.finish(command);
                done.push(answer);
            }
            self.start(chain.answered_ns);
        }
    }

    const HEALTH_CHANGES: bool = true;

    fn describe_health(&self, info: &mut DeviceInfo) {
        info.initialised = self.is_initialised();
        let needed = self.p.batteries_needed as usize;
        let good = self.batteries.iter().filter(|b| **b == Battery::Good).count();
        if good >= needed {
            return;
        }
        let [first, second] = self.batteries.map(Battery::in_words);
        let states = format!("battery 1 {first}, battery 2 {second}");
        let reason = match good {
            0 => format!("no battery is good ({states})"),
            _ => format!("only {good} of the {needed} batteries it needs is good ({states})"),
        };
        info.persistence = Persistence::Volatile { reason };
    }

    /// Contents given are contents written.
    fn contents_replaced(&mut self, _: &Store) {
        self.unwritten = Vec::new();
        self.unwritten_count = 0;
    }
}
