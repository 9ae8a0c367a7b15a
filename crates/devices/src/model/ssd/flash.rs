//! Controller, channels and dies. When a command arrives, everything that determines its completion
//! has happened already, so the completion is computed at once: each part is busy until some
//! instant.

use super::params::{SsdCache, SsdTimings};
use crate::model::agenda::Agenda;
use crate::model::engine::{Command, CommandCompletion, CommandKind, Physics};

/// Sequential streams that the drive recognises.
const STREAMS: usize = 16;

#[derive(Debug, Default)]
struct Die {
    read_until_ns: u64,
    program_until_ns: u64,
    programmed: u64,
}

#[derive(Debug)]
pub(super) struct Flash {
    p: SsdTimings,
    command_until_ns: u64,
    link_in_until_ns: u64,
    link_out_until_ns: u64,
    channel_until_ns: Vec<u64>,
    dies: Vec<Die>,
    /// The die that takes the next full page.
    turn: usize,
    /// Bytes to be programmed that do not fill a page yet.
    partial: f64,
    /// Bytes of the host in the buffer, and when parts of them leave it.
    buffered: u64,
    leaving: Agenda<u64>,
    /// Where recent writes ended, the latest last.
    streams: Vec<u64>,
    /// Whether something was written since the last flush.
    unflushed: bool,
    host_events: Agenda<u64>,
}

impl Flash {
    pub(super) fn new(p: SsdTimings) -> Self {
        Flash {
            command_until_ns: 0,
            link_in_until_ns: 0,
            link_out_until_ns: 0,
            channel_until_ns: vec![0; p.channels],
            dies: (0..p.dies).map(|_| Die::default()).collect(),
            turn: 0,
            partial: 0.0,
            buffered: 0,
            leaving: Agenda::default(),
            streams: Vec::new(),
            unflushed: false,
            host_events: Agenda::default(),
            p,
        }
    }

    fn read(&mut self, at: u64, offset: u64, len: u64) -> u64 {
        let mut fetched = at;
        let (first, last) = (offset / self.p.page, (offset + len - 1) / self.p.page);
        for page in first..=last {
            let begin = offset.max(page * self.p.page);
            let bytes = (offset + len).min((page + 1) * self.p.page) - begin;
            fetched = fetched.max(self.read_page(at, page, bytes));
        }
        // Pages go out as they come; the last one's time on the link remains.
        let link = self.link_out_until_ns.max(at + self.p.read_ns) + self.p.interface.time(len);
        let tail = self.p.interface.time(len.min(4096));
        self.link_out_until_ns = link.max(fetched + tail);
        self.link_out_until_ns
    }

    fn read_page(&mut self, at: u64, page: u64, bytes: u64) -> u64 {
        let number = (page % self.p.dies as u64) as usize;
        let die = &mut self.dies[number];
        let mut start = at.max(die.read_until_ns);
        if die.program_until_ns > start {
            start += self.p.suspend_ns;
            die.program_until_ns += self.p.suspend_ns + self.p.read_ns;
        }
        die.read_until_ns = start + self.p.read_ns;
        let channel = &mut self.channel_until_ns[number % self.p.channels];
        *channel = (*channel).max(die.read_until_ns) + self.p.channel.time(bytes);
        *channel
    }

    /// Programs one page on the next die, from `at` on; returns when it is in the array.
    fn program_page(&mut self, at: u64) -> u64 {
        let number = self.turn;
        self.turn = (number + 1) % self.p.dies;
        let channel = &mut self.channel_until_ns[number % self.p.channels];
        let die = &mut self.dies[number];
        // The register is filled as soon as the last page has left it.
        let filled = at.max(die.program_until_ns) + self.p.channel.time(self.p.page);
        *channel = (*channel).max(at) + self.p.channel.time(self.p.page);
        die.program_until_ns = filled.max(*channel) + self.p.program_ns;
        die.programmed += 1;
        if die.programmed.is_multiple_of(self.p.pages_per_block) {
            die.program_until_ns += self.p.erase_ns;
        }
        die.program_until_ns
    }

    /// Programs what `len` bytes of the host cause; returns when the last full page is in flash.
    fn program(&mut self, at: u64, len: u64, amplification: f64) -> u64 {
        let page = self.p.page as f64;
        self.partial += len as f64 * amplification;
        let pages = (self.partial / page).floor();
        self.partial -= pages * page;
        let pages = pages as u64;
        let mut ends = at;
        let mut left = len;
        for i in 0..pages {
            ends = ends.max(self.program_page(at));
            // The host's bytes leave the buffer with the pages that they cause.
            let share = left / (pages - i);
            self.leaving.enter(ends, share);
            left -= share;
        }
        if left > 0 {
            self.leaving.enter(ends, left);
        }
        ends
    }

    /// Pads the last page; returns when everything accepted is in flash.
    fn drain(&mut self, at: u64) -> u64 {
        if self.partial > 0.0 {
            self.partial = 0.0;
            self.program_page(at);
        }
        self.dies.iter().map(|die| die.program_until_ns).fold(at, u64::max)
    }

    fn amplification(&mut self, offset: u64, len: u64) -> f64 {
        let stream = self.streams.iter().position(|end| *end == offset);
        match stream {
            Some(i) => {
                self.streams.remove(i);
            }
            None if self.streams.len() >= STREAMS => {
                self.streams.remove(0);
            }
            None => {}
        }
        self.streams.push(offset + len);
        if stream.is_some() { 1.0 } else { self.p.amplification }
    }

    /// When the buffer has space for `len` more bytes: from `at` on, or when enough have left.
    fn space(&mut self, at: u64, len: u64) -> u64 {
        let mut when = at;
        while let Some((_, bytes)) = self.leaving.take_due(at) {
            self.buffered -= bytes;
        }
        while self.buffered > 0 && self.buffered + len > self.p.buffer {
            let Some((left_at, bytes)) = self.leaving.take_due(u64::MAX) else { break };
            self.buffered -= bytes;
            when = when.max(left_at);
        }
        self.buffered += len;
        when
    }

    fn write(&mut self, at: u64, offset: u64, len: u64, fua: bool) -> u64 {
        self.unflushed = true;
        let amplification = self.amplification(offset, len);
        let from = self.space(at, len).max(self.link_in_until_ns);
        self.link_in_until_ns = from + self.p.interface.time(len);
        let received = self.link_in_until_ns;
        let programmed = self.program(received, len, amplification);
        let durable = match self.p.cache {
            SsdCache::Protected => false,
            SsdCache::Volatile => fua,
            SsdCache::Off => true,
        };
        if !durable {
            return received + self.p.buffer_ns;
        }
        let padded = if self.partial > 0.0 {
            self.partial = 0.0;
            self.program_page(received)
        } else {
            programmed
        };
        padded.max(programmed) + self.p.buffer_ns
    }

    fn flush(&mut self, at: u64) -> u64 {
        if self.p.cache != SsdCache::Volatile || !std::mem::take(&mut self.unflushed) {
            return at;
        }
        self.drain(at) + self.p.flush_ns
    }
}

impl Physics for Flash {
    const DISCARDS: bool = true;

    fn arrive(&mut self, at_ns: u64, command: Command) {
        self.command_until_ns = self.command_until_ns.max(at_ns) + self.p.command_ns;
        let at = self.command_until_ns;
        let Command { id, op, offset, len } = command;
        let done_ns = match op {
            CommandKind::Read => self.read(at, offset, len),
            CommandKind::Write { fua } => self.write(at, offset, len, fua),
            CommandKind::Flush => self.flush(at),
            CommandKind::Discard => at,
        };
        self.host_events.enter(done_ns, id);
    }

    fn next_event(&self) -> Option<u64> {
        self.host_events.next()
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<CommandCompletion>) {
        while let Some((_, id)) = self.host_events.take_due(until_ns) {
            done.push(CommandCompletion::well(id));
        }
    }
}
