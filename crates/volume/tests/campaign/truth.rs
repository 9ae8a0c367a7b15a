//! What was written where, and what may be there after a power cut.

use steadfast_block::pattern;

pub const BLOCK: u64 = 4096;

/// A version of a block: the tag of the write, 0 for zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    tag: u64,
    /// Acknowledged with success.
    done: bool,
}

/// All blocks of the volume.
pub struct Truth {
    blocks: Vec<Block>,
    next: u64,
}

struct Block {
    /// What was found by the last recovery: the contents of the first version.
    found: Vec<u8>,
    /// Since the last recovery; the first was found then.
    versions: Vec<Version>,
    /// Versions before this one may not come back.
    floor: usize,
    /// Nobody could read it after the last cut: who holds it is not there. What was not promised
    /// may be lost.
    unseen: bool,
}

pub fn bytes_of(tag: u64, block: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK as usize];
    if tag != 0 {
        pattern::fill(tag, block * BLOCK, &mut bytes);
    }
    bytes
}

/// A power cut leaves each sector old or new.
const SECTOR: usize = 512;

fn tag_of(sector: &[u8], offset: u64) -> Option<u64> {
    if sector.iter().all(|b| *b == 0) {
        return Some(0);
    }
    let stamp = pattern::stamp_of(sector)?;
    (stamp.position == offset).then_some(stamp.tag)
}

impl Truth {
    pub fn new(blocks: u64) -> Truth {
        let zero = Version { tag: 0, done: true };
        let found = vec![0; BLOCK as usize];
        let block =
            |_| Block { found: found.clone(), versions: vec![zero], floor: 0, unseen: false };
        Truth { blocks: (0..blocks).map(block).collect(), next: 0 }
    }

    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// The volume has grown; what is new is zeros.
    pub fn grow(&mut self, blocks: u64) {
        let more = Truth::new(blocks.saturating_sub(self.blocks()));
        self.blocks.extend(more.blocks);
    }

    /// A write (or, with zeros, a discard) begins; its tag.
    pub fn begin(&mut self, first: u64, count: u64, zeros: bool) -> u64 {
        self.next += 1;
        let tag = if zeros { 0 } else { self.next };
        for block in first..first + count {
            self.blocks[block as usize].versions.push(Version { tag, done: false });
        }
        tag
    }

    /// It was acknowledged; with FUA it is promised.
    pub fn done(&mut self, first: u64, count: u64, fua: bool) {
        for block in first..first + count {
            let block = &mut self.blocks[block as usize];
            let last = block.versions.len() - 1;
            block.versions[last].done = true;
            if fua {
                block.floor = last;
            }
        }
    }

    /// What a flush that begins now will promise.
    pub fn flush_begins(&self) -> Vec<usize> {
        let newest = |b: &Block| b.versions.iter().rposition(|v| v.done).unwrap_or(0);
        self.blocks.iter().map(newest).collect()
    }

    /// The volume was closed, with success: all that was done is promised.
    pub fn closed(&mut self) {
        let promised = self.flush_begins();
        self.flush_done(&promised);
    }

    pub fn flush_done(&mut self, promised: &[usize]) {
        for (block, floor) in self.blocks.iter_mut().zip(promised) {
            block.floor = block.floor.max(*floor);
        }
    }

    /// Whether these bytes may be read while nothing of the block is in flight.
    pub fn check_live(&self, block: u64, bytes: &[u8]) -> Result<(), String> {
        let known = &self.blocks[block as usize];
        let newest = known.versions.iter().rposition(|v| v.done).unwrap_or(0);
        let certain = if known.unseen { known.floor } else { newest };
        self.check(block, bytes, certain, "while in use")
    }

    /// Whether these bytes may be there after a power cut.
    pub fn check_cut(&self, block: u64, bytes: &[u8]) -> Result<(), String> {
        self.check(block, bytes, self.blocks[block as usize].floor, "after a cut")
    }

    fn check(&self, block: u64, bytes: &[u8], from: usize, when: &str) -> Result<(), String> {
        let known = &self.blocks[block as usize];
        for (n, sector) in bytes.chunks(SECTOR).enumerate() {
            let tag = tag_of(sector, block * BLOCK + (n * SECTOR) as u64);
            let found = &known.found[n * SECTOR..(n + 1) * SECTOR];
            let is = |n: usize, v: &Version| match n {
                0 => found == sector,
                _ => Some(v.tag) == tag,
            };
            let versions = || known.versions.iter().enumerate();
            if versions().skip(from).any(|(n, v)| is(n, v)) {
                continue;
            }
            let what = match tag {
                _ if versions().take(from).any(|(n, v)| is(n, v)) => "an older version",
                Some(_) => "what was never there",
                None => "no version of anything",
            };
            let all: Vec<u64> = known.versions.iter().map(|v| v.tag).collect();
            return Err(format!(
                "block {block}, sector {n}, {when} holds {what} ({tag:?}); from {from} of {all:?}"
            ));
        }
        Ok(())
    }

    /// Nobody can read it now.
    pub fn hide(&mut self, block: u64) {
        self.blocks[block as usize].unseen = true;
    }

    /// What was found is where it begins again.
    pub fn settle(&mut self, block: u64, bytes: &[u8]) {
        let versions = vec![Version { tag: u64::MAX, done: true }];
        self.blocks[block as usize] =
            Block { found: bytes.to_vec(), versions, floor: 0, unseen: false };
    }
}
