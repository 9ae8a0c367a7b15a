//! Reading, writing and discarding sectors of an arena.

use steadfast_block::{BlockDevice, BlockError, DirectMemory, Result};
use zerocopy::IntoBytes;

use super::arena::{Arena, Lane};
use super::flog::{HALF, Log, following};
use super::map::{Entry, State};
use super::planted::Bug;
use steadfast_block::planted::BugSwitch;

impl Arena {
    /// Reads a sector.
    pub fn read(&self, memory: &dyn DirectMemory, sector: u32, out: &mut [u8]) -> Result<()> {
        let lock = self.lock_entry(sector);
        let entry = self.entry(memory, sector)?;
        let reader = match entry.state {
            State::Initial | State::Zero => {
                out.fill(0);
                return Ok(());
            }
            State::Error => return Err(self.lost(sector)),
            State::Normal => self.reading.enter(entry.block),
        };
        drop(lock);
        let loaded = memory.load(self.block_at(entry.block), out);
        drop(reader);
        if let Err(BlockError::Io { .. }) = &loaded {
            self.note_error(memory, sector, entry);
        }
        loaded
    }

    fn lost(&self, sector: u32) -> BlockError {
        let at = self.at + self.layout.entry_at(sector);
        let reason = format!(
            "sector {sector} of the arena at byte {} is marked as one that could not be read: its \
             contents are lost; writing it makes it good again",
            self.at
        );
        self.error("read", at, reason)
    }

    /// Marks a sector whose block cannot be read, so that it is known for good.
    fn note_error(&self, memory: &dyn DirectMemory, sector: u32, read: Entry) {
        if self.check_writable().is_err() {
            return;
        }
        let _lock = self.lock_entry(sector);
        if self.entry(memory, sector) != Ok(read) {
            // It was written meanwhile.
            return;
        }
        let entry = Entry { state: State::Error, block: read.block };
        // If it cannot be marked, the next read will find out again.
        let marked = self.set_entry(memory, sector, entry);
        drop(
            marked.and_then(|()| self.persist_entry(memory, sector)).and_then(|()| memory.fence()),
        );
    }

    /// Writes a sector: it is durable on return, and never torn.
    pub fn write(
        &self,
        (device, memory): (&dyn BlockDevice, &dyn DirectMemory),
        sector: u32,
        data: &[u8],
        planted: BugSwitch<Bug>,
    ) -> Result<()> {
        self.check_writable()?;
        let (number, mut lane) = self.lane()?;
        if !planted.has(Bug::ReaderNotWaitedFor) {
            self.reading.wait_until_left(lane.block);
        }
        if planted.has(Bug::MapBeforeData) {
            let _lock = self.lock_entry(sector);
            let entry = self.entry(memory, sector)?;
            self.log(memory, (sector, entry), (number, &mut lane), planted)?;
            memory.store(self.block_at(lane.block), data)?;
            memory.persist(self.block_at(lane.block), data.len() as u64)?;
            memory.fence()?;
            lane.block = entry.block;
            return Ok(());
        }
        // Step one. Nothing names the block yet: if it cannot be written, nothing has happened.
        let block_at = self.block_at(lane.block);
        if let Err(error) = memory.store(block_at, data) {
            // Poison: it goes away where whole sectors are written by a request.
            if device.write_fua(block_at, data.to_vec().into()).is_err() {
                lane.retired = true;
                return Err(error);
            }
        }
        if !planted.has(Bug::DataNotPersisted) {
            memory.persist(block_at, data.len() as u64).map_err(|error| self.fail(error))?;
        }
        let _lock = self.lock_entry(sector);
        // Another one may have failed while this one waited.
        self.check_writable()?;
        let entry = self.entry(memory, sector)?;
        if entry.block == lane.block {
            let reason = format!(
                "the map names block {} for sector {sector} of the arena at byte {}, and the flog \
                 says that it is free: check the namespace",
                entry.block, self.at
            );
            return Err(self.fail(self.error("write", block_at, reason)));
        }
        // From here on a failure leaves it unknown which of the blocks is the free one.
        self.log(memory, (sector, entry), (number, &mut lane), planted)
            .map_err(|error| self.fail(error))?;
        lane.block = entry.block;
        Ok(())
    }

    /// The rest of step one, and steps two and three. The sector's lock is held.
    fn log(
        &self,
        memory: &dyn DirectMemory,
        (sector, old): (u32, Entry),
        (number, lane): (u32, &mut Lane),
        planted: BugSwitch<Bug>,
    ) -> Result<()> {
        let log = Log::new(sector, old.logged(), lane.block, lane.sequence);
        let (first, second) = log.as_bytes().split_at(HALF);
        let at = |half| self.half_at(number, lane.place, half);
        let (mut halves, swapped) = ([(at(0), first), (at(1), second)], Bug::HalvesSwapped);
        if planted.has(swapped) {
            halves.reverse();
        }
        memory.store(halves[0].0, halves[0].1)?;
        memory.persist(halves[0].0, HALF as u64)?;
        // The data is waited for here too.
        if !planted.has(Bug::NoFenceAfterData) {
            memory.fence()?;
        }
        memory.store(halves[1].0, halves[1].1)?;
        memory.persist(halves[1].0, HALF as u64)?;
        if !planted.has(Bug::NoFenceAfterFlog) {
            memory.fence()?;
        }
        self.set_entry(memory, sector, Entry { state: State::Normal, block: lane.block })?;
        if !planted.has(Bug::MapNotPersisted) {
            self.persist_entry(memory, sector)?;
        }
        memory.fence()?;
        lane.place = 1 - lane.place;
        if !planted.has(Bug::SequenceNotAdvanced) {
            lane.sequence = following(lane.sequence);
        }
        Ok(())
    }

    /// Makes sectors read as zeros; what was never written does already. The caller fences.
    pub fn discard(&self, memory: &dyn DirectMemory, sector: u32) -> Result<()> {
        self.check_writable()?;
        let _lock = self.lock_entry(sector);
        let entry = self.entry(memory, sector)?;
        match entry.state {
            State::Initial | State::Zero => return Ok(()),
            // A block that could not be read is made good by a write only.
            State::Error => return Ok(()),
            State::Normal => {}
        }
        self.set_entry(memory, sector, Entry { state: State::Zero, block: entry.block })?;
        self.persist_entry(memory, sector)
    }
}
