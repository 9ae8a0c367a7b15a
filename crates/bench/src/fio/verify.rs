//! Whether what is read is what was written.
//!
//! Every sector of a job with `verify` is stamped with the write that it is from and its place in
//! the file ([`steadfast_block::pattern`]); all its bytes follow from these two. So a block is
//! checked byte for byte, and a job that only reads can check what another run has written.

use std::collections::BTreeMap;

use bytes::Bytes;
use steadfast_block::pattern::{self, SECTOR};

/// What is wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("verify: wrong data in {file} at {offset}: {what}")]
pub struct WrongBlock {
    /// The file's path.
    pub file: String,
    /// Where the first wrong sector begins in it.
    pub offset: u64,
    /// What it holds and should hold.
    pub what: String,
}

/// Checks what was read at an offset. `tag`: the write that it must be from; else any of that
/// place.
pub(super) fn check(
    file: &str,
    offset: u64,
    data: &[u8],
    tag: Option<u64>,
) -> Result<(), WrongBlock> {
    for (at, sector) in (offset..).step_by(SECTOR).zip(data.chunks(SECTOR)) {
        let wrong = |what: String| WrongBlock { file: file.to_owned(), offset: at, what };
        match pattern::stamp_of(sector) {
            None => {
                return Err(wrong("these 512 bytes were not written by a job with verify".into()));
            }
            Some(stamp) if stamp.position != at => {
                return Err(wrong(format!("the data of {}", stamp.position)));
            }
            Some(stamp) if tag.is_some_and(|tag| tag != stamp.tag) => {
                return Err(wrong(format!(
                    "the data of write {:#x}, and the last one was {:#x}",
                    stamp.tag,
                    tag.unwrap_or(0)
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The writes of a job whose data no later one has replaced.
#[derive(Default)]
pub(super) struct WrittenBlocks {
    /// By file and offset: length and tag.
    blocks: BTreeMap<(usize, u64), (u64, u64)>,
    last: u64,
}

impl WrittenBlocks {
    /// Notes a write, and returns its tag. `number`: of the job, from 1 on.
    pub(super) fn write(&mut self, number: u64, file: usize, offset: u64, len: u64) -> u64 {
        self.last += 1;
        let tag = number << 48 | self.last;
        let end = offset + len;
        // Those that it touches begin before its end.
        while let Some((&(_, at), &(was, old))) =
            self.blocks.range((file, 0)..(file, end)).next_back()
        {
            if at + was <= offset {
                break;
            }
            self.blocks.remove(&(file, at));
            if at + was > end {
                self.blocks.insert((file, end), (at + was - end, old));
            }
            if at < offset {
                self.blocks.insert((file, at), (offset - at, old));
            }
        }
        self.blocks.insert((file, offset), (len, tag));
        tag
    }

    /// All of them: file, offset, length, tag.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, u64, u64, u64)> {
        self.blocks.iter().map(|((file, offset), (len, tag))| (*file, *offset, *len, *tag))
    }
}

/// The bytes of a write that is verified.
pub(super) fn stamped(tag: u64, offset: u64, len: usize) -> Bytes {
    pattern::bytes(tag, offset, len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_wrong_sector_is_found() {
        let good = stamped(1 << 48 | 7, 8192, 4096);
        assert_eq!(check("f", 8192, &good, Some(1 << 48 | 7)), Ok(()));
        assert_eq!(check("f", 8192, &good, None), Ok(()));
        let text = |r: Result<(), WrongBlock>| r.unwrap_err().to_string();
        assert!(text(check("f", 4096, &good, None)).contains("f at 4096: the data of 8192"));
        assert!(text(check("f", 8192, &good, Some(3))).contains("last one was 0x3"));
        let mut bad = good.to_vec();
        bad[1025] ^= 1;
        assert!(text(check("f", 8192, &bad, None)).contains("f at 9216: these 512 bytes"));
    }

    proptest! {
        #[test]
        fn the_last_write_of_each_sector_is_known(
            writes in prop::collection::vec((0usize..2, 0u64..40, 1u64..9), 1..60),
        ) {
            let mut written = WrittenBlocks::default();
            let mut model = BTreeMap::new();
            for (file, at, len) in writes {
                let tag = written.write(1, file, at, len);
                (at..at + len).for_each(|sector| { model.insert((file, sector), tag); });
            }
            let mut seen = BTreeMap::new();
            for (file, at, len, tag) in written.all() {
                for sector in at..at + len {
                    prop_assert_eq!(seen.insert((file, sector), tag), None);
                }
            }
            prop_assert_eq!(seen, model);
        }
    }
}
