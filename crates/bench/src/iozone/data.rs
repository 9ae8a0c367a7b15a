//! What is written, and the check of what is read.
//!
//! Every write has a tag of its own (the file's number above 48 bits of sequence number), and
//! every sector of it is stamped with the tag and its place ([`steadfast_block::pattern`]). So no
//! layer below can profit from repeated or empty data, and a sector read back shows which write
//! it is from. IOzone writes one buffer of near zeros over and over.

use bytes::Bytes;
use steadfast_block::pattern::{self, SECTOR};
use steadfast_block::rng::Rng;

use super::options::Options;
use super::results::Surroundings;

/// Memory for direct I/O begins on a page.
const ALIGN: usize = 4096;

/// One child's file, through all tests of a run.
pub(super) struct FileData {
    /// Upper 16 bits of the tags.
    number: u64,
    /// The last tag's sequence number.
    last: u64,
    /// The tag last written to each record, zero if not by this run; only kept to verify.
    written: Option<Vec<u64>>,
    record_bytes: u64,
    /// What is written repeatedly, if it is: one run for each length of a write.
    repeated: Option<Vec<Bytes>>,
    shape: Shape,
}

/// What the data are like, apart from being distinguishable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Every sector differs.
    Stamped,
    /// All bytes are this one (-V).
    Pattern(u8),
    /// The beginning of each record is the same in all files (-+w, per cent of it); of that,
    /// shares are the same in all records too (-+y), or in the file's records only (-+C).
    Repeats {
        /// -+w.
        across: u32,
        /// -+y.
        within: u32,
        /// -+C.
        own: u32,
    },
}

impl Shape {
    /// What a command line asks for, where nobody is to read back which write a sector is from,
    /// and the bytes matter to somebody.
    pub(super) fn of(options: &Options, around: &Surroundings) -> Shape {
        if around.judged || (around.repeat_data && options.pattern.is_none()) {
            return Shape::Stamped;
        }
        match (options.pattern, options.dedup_percent) {
            (Some(byte), _) => Shape::Pattern(byte),
            (None, 0) => Shape::Stamped,
            (None, across) => Shape::Repeats {
                across,
                within: options.dedup_within_percent,
                own: options.dedup_file_percent,
            },
        }
    }
}

/// Bytes that no compression shortens, the same for the same seed.
fn noise(seed: u64, buf: &mut [u8]) {
    let mut rng = Rng::new(seed);
    for chunk in buf.chunks_mut(8) {
        let word = rng.bits().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

fn percent(of: usize, percent: u32) -> usize {
    of * percent as usize / 100
}

/// What is wrong with data that was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("wrong data at {offset}: {what}")]
pub(super) struct Mismatch {
    /// Where the first wrong sector is in the file.
    offset: u64,
    /// What it holds and should hold.
    what: String,
}

impl FileData {
    /// The file of a child, with what the command line and the surroundings ask for.
    pub(super) fn of(child: usize, options: &Options, around: &Surroundings) -> FileData {
        let data = FileData::new(child, options.records(), options.record_bytes, options.verify);
        let data = FileData { shape: Shape::of(options, around), ..data };
        if around.repeat_data { data.repeating() } else { data }
    }

    fn new(child: usize, records: u64, record_bytes: u64, verify: bool) -> FileData {
        let written = verify.then(|| vec![0; records as usize]);
        FileData {
            number: child as u64 + 1,
            last: 0,
            written,
            record_bytes,
            repeated: None,
            shape: Shape::Stamped,
        }
    }

    /// The same file, written with the same bytes every time; not to be verified.
    fn repeating(self) -> FileData {
        FileData { repeated: self.written.is_none().then(Vec::new), ..self }
    }

    /// Puts the parts that repeat into the records of a write.
    fn repeat(&self, offset: u64, data: &mut [u8], (across, within, own): (u32, u32, u32)) {
        for (i, record) in data.chunks_mut(self.record_bytes as usize).enumerate() {
            let number = offset / self.record_bytes + i as u64;
            let same = percent(record.len(), across);
            let (within, own) = (percent(same, within), percent(same, own));
            noise(1, &mut record[..within]);
            noise(2 + self.number, &mut record[within..within + own]);
            noise(!number, &mut record[within + own..same]);
        }
    }

    /// The bytes of a write of `len` bytes at `offset`.
    pub(super) fn bytes(&mut self, tag: u64, offset: u64, len: usize) -> Bytes {
        match self.shape {
            Shape::Stamped => {}
            Shape::Pattern(byte) => return aligned(len, |data| data.fill(byte)),
            Shape::Repeats { across, within, own } => {
                return aligned(len, |data| {
                    pattern::fill(tag, offset, data);
                    self.repeat(offset, data, (across, within, own));
                });
            }
        }
        let number = self.number;
        let Some(repeated) = &mut self.repeated else { return stamped(tag, offset, len) };
        if let Some(run) = repeated.iter().find(|run| run.len() == len) {
            return run.clone();
        }
        let tag = number << 48 | 1;
        let run = match steadfast_runtime::is_simulated() {
            true => pattern::interned(tag, 0, len),
            false => stamped(tag, 0, len),
        };
        repeated.push(run.clone());
        run
    }

    /// A tag for the next write.
    pub(super) fn next_tag(&mut self) -> u64 {
        self.last += 1;
        self.number << 48 | self.last
    }

    /// Notes that `tag` was written over whole records.
    pub(super) fn wrote(&mut self, tag: u64, offset: u64, len: u64) {
        let (first, count) = (offset / self.record_bytes, len / self.record_bytes);
        if let Some(written) = &mut self.written {
            written[first as usize..(first + count) as usize].fill(tag);
        }
    }

    /// Notes that the file was emptied.
    pub(super) fn emptied(&mut self) {
        if let Some(written) = &mut self.written {
            written.fill(0);
        }
    }

    /// Compares data read at `offset` with what was written there last. Records that were
    /// written before this run must still be stamped for their place.
    pub(super) fn check(&self, offset: u64, data: &[u8]) -> Result<(), Mismatch> {
        if let Shape::Pattern(byte) = self.shape {
            let Some(at) = data.iter().position(|b| *b != byte) else { return Ok(()) };
            let what = format!("expected byte {byte:#x}, found {:#x}", data[at]);
            return Err(Mismatch { offset: offset + at as u64, what });
        }
        let Some(written) = &self.written else { return Ok(()) };
        for (i, sector) in data.chunks(SECTOR).enumerate() {
            let at = offset + (i * SECTOR) as u64;
            let expected = written[(at / self.record_bytes) as usize];
            let found = pattern::stamp_of(sector);
            let right = found.is_some_and(|stamp| {
                stamp.position == at && (expected == 0 || stamp.tag == expected)
            });
            if !right {
                let found = match found {
                    Some(s) => format!("write {:#x} of offset {}", s.tag, s.position),
                    None => "no stamped data".into(),
                };
                let what = format!("expected write {expected:#x}, found {found}");
                return Err(Mismatch { offset: at, what });
            }
        }
        Ok(())
    }
}

/// The data of a write. In real time it begins on a page boundary, so that direct I/O takes it as
/// it is; in the simulation nobody looks at addresses.
pub(super) fn stamped(tag: u64, offset: u64, len: usize) -> Bytes {
    if steadfast_runtime::is_simulated() {
        return pattern::bytes(tag, offset, len);
    }
    aligned(len, |data| pattern::fill(tag, offset, data))
}

/// Memory that begins on a page, filled.
fn aligned(len: usize, fill: impl FnOnce(&mut [u8])) -> Bytes {
    let mut memory = vec![0; len + ALIGN];
    let start = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
    fill(&mut memory[start..start + len]);
    Bytes::from(memory).slice(start..start + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_distinct_and_never_zero() {
        let mut a = FileData::new(0, 4, 1024, false);
        let mut b = FileData::new(1, 4, 1024, false);
        let tags = [a.next_tag(), a.next_tag(), b.next_tag()];
        assert_eq!(tags, [1 << 48 | 1, 1 << 48 | 2, 2 << 48 | 1]);
    }

    #[test]
    fn repeated_data_is_made_once_for_each_length() {
        let mut file = FileData::new(0, 4, 1024, false).repeating();
        let (a, b) = (file.bytes(1 << 48 | 1, 0, 4096), file.bytes(1 << 48 | 2, 8192, 4096));
        assert_eq!(a.as_ptr(), b.as_ptr());
        assert_eq!(file.bytes(1 << 48 | 3, 0, 1024).len(), 1024);
        let mut checked = FileData::new(0, 4, 1024, true).repeating();
        assert_ne!(checked.bytes(1 << 48 | 1, 0, 512), checked.bytes(1 << 48 | 2, 0, 512));
    }

    #[test]
    fn data_is_aligned() {
        let data = stamped(1 << 48 | 1, 0, 8192);
        assert_eq!((data.len(), data.as_ptr().align_offset(ALIGN)), (8192, 0));
    }

    #[test]
    fn what_is_judged_is_stamped_whatever_was_asked_for() {
        let options = Options { dedup_percent: 1, ..Options::default() };
        let around = Surroundings::default();
        assert_ne!(Shape::of(&options, &around), Shape::Stamped);
        let judged = Surroundings { judged: true, ..around.clone() };
        assert_eq!(Shape::of(&options, &judged), Shape::Stamped);
        let pattern = Options { pattern: Some(7), ..options };
        assert_eq!(Shape::of(&pattern, &judged), Shape::Stamped);
        // What is read back is compared with the pattern, also where data repeat.
        let repeated = Surroundings { repeat_data: true, ..around };
        assert_eq!(Shape::of(&pattern, &repeated), Shape::Pattern(7));
    }

    #[test]
    fn the_check_finds_stale_and_misplaced_data() {
        let mut file = FileData::new(0, 4, 1024, true);
        let (old, new) = (file.next_tag(), file.next_tag());
        file.wrote(old, 0, 4096);
        file.wrote(new, 1024, 2048);
        assert_eq!(file.check(1024, &stamped(new, 1024, 2048)), Ok(()));
        assert_eq!(file.check(0, &stamped(old, 0, 1024)), Ok(()));
        let stale = file.check(1024, &stamped(old, 1024, 1024)).unwrap_err();
        assert_eq!(stale.offset, 1024);
        assert!(file.check(0, &stamped(old, 1024, 1024)).is_err());
        let mut flipped = stamped(new, 1024, 1024).to_vec();
        flipped[700] ^= 1;
        assert_eq!(file.check(1024, &flipped).unwrap_err().offset, 1536);
        file.emptied();
        assert_eq!(file.check(1024, &stamped(old, 1024, 1024)), Ok(()));
        assert!(file.check(1024, &[0; 512]).is_err());
    }
}
