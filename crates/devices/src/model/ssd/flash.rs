//! Controller, channels and dies. When a command arrives, everything that determines its completion
//! has happened already, so the completion is computed at once: each part is busy until some
//! instant.

use super::params::{SsdCache, SsdParams};
use crate::model::ModelError;
use crate::model::buffer::BufferSpace;
use crate::model::engine::{Command, CommandKind, Physics};
use crate::model::units::{kib, ms, transfer_ns, us};

/// Sequential streams that the drive recognises.
const STREAMS: usize = 16;

#[derive(Debug, Default)]
struct Die {
    read_until_ns: u64,
    program_until_ns: u64,
    programmed: u64,
}

#[derive(Debug, Default)]
pub struct Flash {
    p: SsdParams,
    /// Bytes of a page.
    page: u64,
    command_until_ns: u64,
    link_in_until_ns: u64,
    link_out_until_ns: u64,
    channel_until_ns: Vec<u64>,
    dies: Vec<Die>,
    /// The die that takes the next full page.
    turn: usize,
    /// Bytes to be programmed that do not fill a page yet.
    partial: f64,
    buffer: BufferSpace,
    /// Where recent writes ended, the latest last.
    streams: Vec<u64>,
    /// Whether something was written since the last flush.
    unflushed: bool,
}

impl Flash {
    fn link_ns(&self, len: u64) -> u64 {
        transfer_ns(len, self.p.interface_mb_per_s)
    }

    fn read(&mut self, at: u64, offset: u64, len: u64) -> u64 {
        let mut fetched = at;
        let (first, last) = (offset / self.page, (offset + len - 1) / self.page);
        for page in first..=last {
            let begin = offset.max(page * self.page);
            let bytes = (offset + len).min((page + 1) * self.page) - begin;
            fetched = fetched.max(self.read_page(at, page, bytes));
        }
        // Pages go out as they come; the last one's time on the link remains.
        let link = self.link_out_until_ns.max(at + us(self.p.read_us)) + self.link_ns(len);
        let tail = self.link_ns(len.min(4096));
        self.link_out_until_ns = link.max(fetched + tail);
        self.link_out_until_ns
    }

    fn read_page(&mut self, at: u64, page: u64, bytes: u64) -> u64 {
        let number = (page % self.dies.len() as u64) as usize;
        let (read_ns, suspend_ns) = (us(self.p.read_us), us(self.p.suspend_us));
        let die = &mut self.dies[number];
        let mut start = at.max(die.read_until_ns);
        if die.program_until_ns > start {
            start += suspend_ns;
            die.program_until_ns += suspend_ns + read_ns;
        }
        die.read_until_ns = start + read_ns;
        let channel = &mut self.channel_until_ns[number % self.p.channels as usize];
        *channel = (*channel).max(die.read_until_ns) + transfer_ns(bytes, self.p.channel_mb_per_s);
        *channel
    }

    /// Programs one page on the next die, from `at` on; returns when it is in the array.
    fn program_page(&mut self, at: u64) -> u64 {
        let number = self.turn;
        self.turn = (number + 1) % self.dies.len();
        let on_channel = transfer_ns(self.page, self.p.channel_mb_per_s);
        let channel = &mut self.channel_until_ns[number % self.p.channels as usize];
        let die = &mut self.dies[number];
        // The register is filled as soon as the last page has left it.
        let filled = at.max(die.program_until_ns) + on_channel;
        *channel = (*channel).max(at) + on_channel;
        die.program_until_ns = filled.max(*channel) + us(self.p.program_us);
        die.programmed += 1;
        if die.programmed.is_multiple_of(self.p.pages_per_block.into()) {
            die.program_until_ns += ms(self.p.erase_ms);
        }
        die.program_until_ns
    }

    /// Programs what `len` bytes of the host cause; returns when the last full page is in flash.
    fn program(&mut self, at: u64, len: u64, amplification: f64) -> u64 {
        let page = self.page as f64;
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
            self.buffer.leave(ends, share);
            left -= share;
        }
        if left > 0 {
            self.buffer.leave(ends, left);
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
        if stream.is_some() { 1.0 } else { self.p.random_write_amplification }
    }

    fn write(&mut self, at: u64, offset: u64, len: u64, fua: bool) -> u64 {
        self.unflushed = true;
        let amplification = self.amplification(offset, len);
        let from = self.buffer.take(at, len).max(self.link_in_until_ns);
        self.link_in_until_ns = from + self.link_ns(len);
        let received = self.link_in_until_ns;
        let programmed = self.program(received, len, amplification);
        let durable = match self.p.write_cache {
            SsdCache::Protected => false,
            SsdCache::Volatile => fua,
            SsdCache::Off => true,
        };
        let buffer_ns = us(self.p.buffer_us);
        if !durable {
            return received + buffer_ns;
        }
        let padded = if self.partial > 0.0 {
            self.partial = 0.0;
            self.program_page(received)
        } else {
            programmed
        };
        padded.max(programmed) + buffer_ns
    }

    fn flush(&mut self, at: u64) -> u64 {
        if self.p.write_cache != SsdCache::Volatile || !std::mem::take(&mut self.unflushed) {
            return at;
        }
        self.drain(at) + us(self.p.flush_us)
    }
}

impl Physics for Flash {
    type Params = SsdParams;

    const DISCARDS: bool = true;

    fn new(params: &SsdParams) -> Result<Self, ModelError> {
        let dies = params.channels * params.dies_per_channel;
        Ok(Flash {
            page: kib(params.page_kb),
            channel_until_ns: vec![0; params.channels as usize],
            dies: (0..dies).map(|_| Die::default()).collect(),
            buffer: BufferSpace::new(kib(params.write_buffer_kb)),
            p: params.clone(),
            ..Flash::default()
        })
    }

    fn queue_depth(params: &SsdParams) -> u32 {
        params.queue_depth
    }

    fn arrive(&mut self, at_ns: u64, command: Command) -> Option<u64> {
        self.command_until_ns = self.command_until_ns.max(at_ns) + us(self.p.command_us);
        let at = self.command_until_ns;
        let Command { op, offset, len, .. } = command;
        Some(match op {
            CommandKind::Read => self.read(at, offset, len),
            CommandKind::Write { fua } => self.write(at, offset, len, fua),
            CommandKind::Flush => self.flush(at),
            CommandKind::Discard => at,
        })
    }
}
