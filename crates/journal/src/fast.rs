//! Writing fast commits: records of the file system's operations in the running transaction, made
//! durable without committing the transaction.
//!
//! # Order
//!
//! 1. No other transaction is being committed, and the superblock on disk says that the log is not
//!    clean: recovery looks for fast commits only behind whole transactions.
//! 2. The data that updates of the running transaction wait for has completed (data=ordered).
//! 3. Of an external log, the file system's device is flushed if there was anything to wait for.
//! 4. All blocks but the last are written; the log's device is flushed; the last, which holds the
//!    tag that ends the fast commit, is written with FUA.
//!
//! When the transaction itself commits later, its fast commits are void, and those of the next one
//! start at the same place. They are not overwritten before it is durable: see 1.
//!
//! # A first fast commit that is torn
//!
//! The kernel refuses a log whose first fast commit has a head but a wrong checksum. So the first
//! fast commit of a transaction is preceded by an empty one, in a block of its own and in its first
//! sector: a torn write always follows a complete one.
//!
//! If a power cut can tear a sector into words, this block is written without its first word, which
//! identifies a fast commit. The word is written when the rest is durable.
//!
//! # Fast commits that are void
//!
//! e2fsck (1.47) refuses a log, and discards it with `-y`, if its first fast commit belongs to
//! another transaction than the next one. So when the transaction is durable the head of its fast
//! commits is overwritten; and before the first transaction of a clean log is durable, leftover
//! heads are overwritten.
//!
//! A reader of fast commits (see `recovery`) stops at the first incomplete one, so no earlier one
//! may be missing: each is durable before the next is written.

use bytes::Bytes;
use steadfast_block::Completion;

use crate::checksum::crc32c;
use crate::ondisk::fast_commit::{ENDS_BYTES, HEAD, PAD, TAG_HEAD_BYTES, TAIL};
use crate::ondisk::superblock::JournalSuperblock;
use crate::planted::Bug;
use crate::shared::JournalCore;
use crate::state::State;
use crate::{FastTag, Log, LogBlock, Result, Tid};

/// Bytes that any power cut leaves old or new.
const WORD: usize = 8;

/// Where the next fast commit goes.
#[derive(Debug, Default)]
pub(crate) struct FastArea {
    /// The transaction whose fast commits are there.
    tid: Option<Tid>,
    /// Blocks that they take.
    used: u32,
}

/// See [`Journal::fast_commit`](crate::Journal::fast_commit).
pub(crate) fn commit(shared: &JournalCore, tid: Tid, tags: &[FastTag]) -> Result<bool> {
    let blocks_there = shared.superblock.get().fast_blocks();
    if !shared.config.fast_commits || shared.config.on_demand || blocks_there.is_empty() {
        return Ok(false);
    }
    let (mut area, wait_for) = loop {
        // The committing task may need the area, so it is not locked meanwhile.
        wait_for_commit(shared);
        let area = shared.fast_area.lock();
        match ready(shared, tid)? {
            Ready::Now(wait_for) => break (area, wait_for),
            Ready::Never => return Ok(false),
            Ready::Later => {}
        }
    };
    if area.tid != Some(tid) {
        *area = FastArea { tid: Some(tid), used: 0 };
    }
    let mut blocks = Vec::new();
    if area.used == 0 {
        blocks.push(first_block(shared.layout.block_size, tid));
    }
    let Some(rest) = encode(shared.layout.block_size, tid, tags) else { return Ok(false) };
    blocks.extend(rest);
    let first = blocks_there.start + area.used;
    if blocks.len() > (blocks_there.end - first) as usize {
        return Ok(false);
    }
    let count = blocks.len() as u32;
    let later = area.used > 0 && shared.config.has(Bug::SecondFastCommitNotWaiting);
    let waits = if later { &[] } else { &wait_for[..] };
    write(shared, first, blocks, waits).inspect_err(|e| shared.abort(e))?;
    area.used += count;
    drop(area);
    let mut st = shared.state.lock();
    if st.running_tid == tid
        && let Some(running) = &mut st.running
    {
        // They were the first, and are durable: nobody needs to wait for them again.
        running.wait_for.drain(..wait_for.len());
    }
    st.stats.fast_commits += 1;
    st.stats.fast_blocks += u64::from(count);
    Ok(true)
}

/// Removes the void fast commits of a transaction that is durable now. A failure aborts the
/// journal.
pub(crate) fn retire(shared: &JournalCore, tid: Tid) {
    if !shared.config.fast_commits {
        return;
    }
    let mut area = shared.fast_area.lock();
    if area.tid != Some(tid) {
        return;
    }
    *area = FastArea::default();
    if let Err(e) = clear(&shared.log, &shared.superblock.get(), true) {
        shared.abort(&e);
    }
}

/// Overwrites the head of whatever fast commits there are, durably if `durable`.
pub(crate) fn clear(log: &Log, sb: &JournalSuperblock, durable: bool) -> Result<()> {
    let blocks = sb.fast_blocks();
    if blocks.is_empty() {
        return Ok(());
    }
    let zeros = Bytes::from(vec![0; log.block_size() as usize]);
    log.write_block(LogBlock(blocks.start), zeros, durable)
}

/// Step 1.
fn wait_for_commit(shared: &JournalCore) {
    let st = shared.state.lock();
    let under_way =
        |st: &mut State| st.committing.is_some() && st.aborted.is_none() && !st.stopping;
    drop(shared.progress.wait_while(st, under_way));
}

/// Whether there can be a fast commit.
enum Ready {
    /// After these.
    Now(Vec<Completion>),
    /// When the commit in progress has ended.
    Later,
    Never,
}

fn ready(shared: &JournalCore, tid: Tid) -> Result<Ready> {
    let st = shared.state.lock();
    if let Some(e) = &st.aborted {
        return Err(e.clone());
    }
    if st.stopping || st.closing || st.running_tid != tid {
        return Ok(Ready::Never);
    }
    if st.committing.is_some() {
        return Ok(Ready::Later);
    }
    if st.marked_empty || st.commit_request.is_at_least(tid) {
        return Ok(Ready::Never);
    }
    let running = st.running.as_ref();
    Ok(running.map_or(Ready::Never, |running| Ready::Now(running.wait_for.clone())))
}

/// Steps 2 to 4.
fn write(
    shared: &JournalCore,
    first: u32,
    mut blocks: Vec<Bytes>,
    wait_for: &[Completion],
) -> Result<()> {
    Completion::wait_all(wait_for)?;
    let claims = shared.log.is_external() && !wait_for.is_empty();
    if claims && !shared.config.has(Bug::FastCommitWithoutFsFlush) {
        shared.flush_fs()?;
    }
    // OK to unwrap: the end of a fast commit is always there.
    let last = blocks.pop().unwrap();
    let torn = shared.log.tears_sectors() && !shared.config.has(Bug::FastCommitHeadAtOnce);
    let starts_area = first == shared.superblock.get().fast_blocks().start;
    // OK to index: the empty fast commit ahead of the first is a block more.
    let head = (torn && starts_area).then(|| {
        let whole = blocks[0].clone();
        blocks[0] = [&[0; WORD], &whole[WORD..]].concat().into();
        whole
    });
    let mut at = first;
    let mut written = Vec::with_capacity(blocks.len());
    for block in blocks {
        let (offset, _) = shared.log.place(LogBlock(at), 1);
        written.push(shared.log.submit_write(offset, block.into(), false));
        at += 1;
    }
    Completion::wait_all(&written)?;
    shared.flush_log()?;
    if let Some(head) = head {
        shared.log.write_block(LogBlock(first), head, true)?;
    }
    shared.log.write_block(LogBlock(at), last, true)
}

/// The empty fast commit ahead of the first.
fn first_block(block_size: usize, tid: Tid) -> Bytes {
    let mut out = FastBlockWriter::new(block_size);
    out.put(HEAD, &[[0; 4], tid.0.to_le_bytes()].concat());
    out.end(tid);
    // OK to unwrap: one block.
    out.blocks.pop().unwrap()
}

/// The blocks of a fast commit; `None` if a tag does not fit a block.
fn encode(block_size: usize, tid: Tid, tags: &[FastTag]) -> Option<Vec<Bytes>> {
    let mut out = FastBlockWriter::new(block_size);
    for tag in tags {
        let bytes = TAG_HEAD_BYTES + tag.value.len();
        // After it there is always room for the head of the next, or of what fills the block.
        if bytes + TAG_HEAD_BYTES > block_size {
            return None;
        }
        out.make_room(bytes);
        out.put(tag.tag, &tag.value);
    }
    out.make_room(TAG_HEAD_BYTES + ENDS_BYTES);
    out.end(tid);
    Some(out.blocks)
}

/// Blocks being filled.
struct FastBlockWriter {
    block_size: usize,
    current: Vec<u8>,
    blocks: Vec<Bytes>,
    sum: u32,
}

impl FastBlockWriter {
    fn new(block_size: usize) -> Self {
        FastBlockWriter { block_size, current: Vec::new(), blocks: Vec::new(), sum: 0 }
    }

    /// Goes to the next block if so many bytes and the head of another tag do not fit this one.
    fn make_room(&mut self, bytes: usize) {
        let left = self.block_size - self.current.len();
        // The kernel of old looked at one byte less of a block.
        if bytes + TAG_HEAD_BYTES < left {
            return;
        }
        let fill = vec![0; left - TAG_HEAD_BYTES];
        self.put(PAD, &fill);
        self.close();
    }

    fn put(&mut self, tag: u16, value: &[u8]) {
        let from = self.current.len();
        self.current.extend(tag.to_le_bytes());
        // OK to cast: less than a block, and those of 64 KiB have room for the head.
        self.current.extend((value.len() as u16).to_le_bytes());
        self.current.extend_from_slice(value);
        self.sum = crc32c(self.sum, &self.current[from..]);
    }

    /// The tag that ends a fast commit takes the rest of its block.
    fn end(&mut self, tid: Tid) {
        let from = self.current.len();
        let len = self.block_size - from - TAG_HEAD_BYTES;
        self.current.extend(TAIL.to_le_bytes());
        self.current.extend((len as u16).to_le_bytes());
        self.current.extend(tid.0.to_le_bytes());
        let sum = crc32c(self.sum, &self.current[from..]);
        self.current.extend(sum.to_le_bytes());
        self.close();
    }

    fn close(&mut self) {
        let mut block = std::mem::take(&mut self.current);
        block.resize(self.block_size, 0);
        self.blocks.push(block.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::fast_commit::tag_at;

    #[test]
    fn tags_fill_blocks_and_end_with_a_checksum() {
        let value = |len| Bytes::from(vec![1; len]);
        let tags: Vec<FastTag> =
            [900, 16, 300, 12, 990, 3].map(|len| FastTag { tag: 6, value: value(len) }).into();
        let blocks = encode(1024, Tid(7), &tags).unwrap();
        let mut seen = Vec::new();
        for block in &blocks {
            assert_eq!(block.len(), 1024);
            let mut at = 0;
            while let Some(tag) = tag_at(block, at) {
                seen.push((tag.tag, tag.end - tag.value_at()));
                at = tag.end;
            }
            assert!(at >= 1020, "a block ends with a tag");
        }
        let lengths: Vec<usize> =
            seen.iter().filter(|(tag, _)| *tag == 6).map(|(_, n)| *n).collect();
        assert_eq!(lengths, [900, 16, 300, 12, 990, 3]);
        assert_eq!(seen.last().unwrap().0, TAIL);
        assert!(encode(1024, Tid(7), &[FastTag { tag: 6, value: value(1020) }]).is_none());
    }
}
