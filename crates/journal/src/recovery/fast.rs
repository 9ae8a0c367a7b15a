//! Reading fast commits: the operations after the last complete transaction, as records of the file
//! system.
//!
//! They are in the last part of the log, always from its first block, and belong to the next
//! transaction: when that one is complete they are void. Each ends with a tag that holds the
//! transaction's number and a checksum over the tags since the previous such tag. A fast commit is
//! valid if all before it are.
//!
//! The kernel refuses a log whose first fast commit was torn by a power cut. We ignore the torn
//! fast commit: it was never acknowledged as durable.

use bytes::Bytes;

use super::read::Reader;
use crate::checksum::crc32c;
use crate::ondisk::fast_commit::{HEAD, PAD, RawTag, TAG_HEAD_BYTES, TAIL, tag_at, words};
use crate::ondisk::superblock::JournalSuperblock;
use crate::planted::Bug;
use crate::{JournalError, LogBlock, Result, Tid};

/// Bytes of fast commits that are taken at most. The kernel's area has 1 MiB, unless asked.
const BYTES_MAX: usize = 64 << 20;

/// One record of a fast commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastTag {
    /// What it is (kernel: `EXT4_FC_TAG_*`); none of those that only structure the log.
    pub tag: u16,
    /// Its value, not interpreted.
    pub value: Bytes,
}

/// The fast commits after the last whole transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastCommits {
    /// The transaction that was running: what they say is part of what it would have done.
    pub tid: Tid,
    /// Their tags in order, commit by commit; at least one commit.
    pub commits: Vec<Vec<FastTag>>,
}

/// The state of the walk over the tags.
struct Walk {
    tid: Tid,
    /// A planted bug: fast commits of any transaction will do.
    any_tid: bool,
    sum: u32,
    current: Vec<FastTag>,
    done: Vec<Vec<FastTag>>,
    bytes: usize,
    /// The first tag has been seen to be a head of this transaction.
    begun: bool,
}

/// Finds the fast commits of transaction `tid`, the first that is not whole; `None` if there are
/// none.
pub(super) fn find(
    reader: &mut Reader<'_>,
    sb: &JournalSuperblock,
    tid: Tid,
) -> Result<Option<FastCommits>> {
    let begun = false;
    let any_tid = reader.has(Bug::FastCommitsOfEarlier);
    let (current, done) = (Vec::new(), Vec::new());
    let mut walk = Walk { tid, any_tid, sum: 0, current, done, bytes: 0, begun };
    for at in sb.fast_blocks() {
        let block = reader.block(LogBlock(at))?;
        if !walk.block(&block)? {
            break;
        }
    }
    let commits = walk.done;
    Ok((!commits.is_empty()).then_some(FastCommits { tid, commits }))
}

impl Walk {
    /// Whether it goes on in the next block.
    fn block(&mut self, block: &Bytes) -> Result<bool> {
        let mut at = 0;
        while at + TAG_HEAD_BYTES <= block.len() {
            let Some(tag) = tag_at(block, at) else { return Ok(false) };
            if !self.tag(block, tag)? {
                return Ok(false);
            }
            at = tag.end;
        }
        Ok(true)
    }

    /// Whether it goes on after this tag.
    fn tag(&mut self, block: &Bytes, tag: RawTag) -> Result<bool> {
        if !self.begun && tag.tag != HEAD {
            return Ok(false);
        }
        let value = &block[tag.value_at()..tag.end];
        match tag.tag {
            HEAD => {
                let (features, tid) = words(value);
                if Tid(tid) != self.tid && !self.any_tid {
                    return Ok(false);
                }
                if features != 0 {
                    let what = format!("fast_commit with features {features:#x}");
                    return Err(JournalError::Unsupported { what });
                }
                self.begun = true;
                self.sum = crc32c(self.sum, &block[tag.at..tag.end]);
            }
            TAIL => {
                let (tid, sum) = words(value);
                // The checksum covers the tail up to itself.
                let covered = crc32c(self.sum, &block[tag.at..tag.value_at() + 4]);
                let due = Tid(tid) == self.tid || self.any_tid;
                if !due || sum != covered {
                    return Ok(false);
                }
                self.sum = 0;
                self.done.push(std::mem::take(&mut self.current));
            }
            PAD => self.sum = crc32c(self.sum, &block[tag.at..tag.end]),
            _ => {
                self.sum = crc32c(self.sum, &block[tag.at..tag.end]);
                self.bytes += tag.end - tag.at;
                if self.bytes > BYTES_MAX {
                    let what = format!("more than {BYTES_MAX} bytes of fast commits");
                    return Err(JournalError::Unsupported { what });
                }
                let value = block.slice(tag.value_at()..tag.end);
                self.current.push(FastTag { tag: tag.tag, value });
            }
        }
        Ok(true)
    }
}
