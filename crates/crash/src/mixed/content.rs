//! The model of one file's data: what it is, and what a power cut may leave of it.

use super::operation::{Index, byte};

/// A change of the data, with the operation's index.
#[derive(Debug, Clone, Copy)]
enum Change {
    Write { index: Index, offset: u64, end: u64 },
    Truncate { size: u64 },
}

/// A file's data after some operations, with what has been promised of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    task: usize,
    /// As a reader sees it now.
    pub data: Vec<u8>,
    changes: Vec<Change>,
    /// For each byte: how many changes there were when it was promised; 0: never.
    promised: Vec<u32>,
    /// The file is at least so long.
    size_min: u64,
    /// And at most so long.
    size_max: u64,
}

/// Why data is not what it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Something promised is missing.
    Broken(String),
    /// Bytes nobody wrote there.
    Stale(String),
}

impl Content {
    pub fn new(task: usize) -> Self {
        Content { task, ..Content::default() }
    }

    pub fn write(&mut self, index: Index, offset: u64, len: u64) {
        let end = offset + len;
        if self.data.len() < end as usize {
            self.data.resize(end as usize, 0);
        }
        for at in offset..end {
            self.data[at as usize] = byte(self.task, index, at);
        }
        self.changes.push(Change::Write { index, offset, end });
        self.size_max = self.size_max.max(end);
    }

    pub fn truncate(&mut self, size: u64) {
        self.data.resize(size as usize, 0);
        self.changes.push(Change::Truncate { size });
        self.size_min = self.size_min.min(size);
        self.size_max = self.size_max.max(size);
    }

    /// All of it was promised: fsync, sync.
    pub fn promise_all(&mut self) {
        self.promised.clear();
        self.promised.resize(self.data.len(), self.changes.len() as u32);
        self.size_min = self.data.len() as u64;
        self.size_max = self.size_min;
    }

    /// This part was promised: O_SYNC.
    pub fn promise(&mut self, offset: u64, len: u64) {
        let (from, to) = (offset as usize, (offset + len) as usize);
        if self.promised.len() < to {
            self.promised.resize(to, 0);
        }
        self.promised[from..to].fill(self.changes.len() as u32);
        self.size_min = self.size_min.max(to as u64);
    }

    /// Whether a cut may have left `found`. `stale_allowed`: what was not promised may be
    /// anything.
    pub fn judge(&self, found: &[u8], stale_allowed: bool) -> Result<(), Fault> {
        let size = found.len() as u64;
        if size < self.size_min || size > self.size_max {
            let (min, max) = (self.size_min, self.size_max);
            let what = format!("{size} bytes long, not {min} to {max}");
            return Err(if size < min { Fault::Broken(what) } else { Fault::Stale(what) });
        }
        for at in 0..found.len().max(self.promised.len()) {
            let value = found.get(at).copied();
            if value.is_some() && value == self.data.get(at).copied() {
                continue;
            }
            self.judge_byte(at, value, stale_allowed)?;
        }
        Ok(())
    }

    /// What was done to a place, in words.
    fn story(&self, at: usize) -> String {
        let place = at as u64;
        let promised = self.promised.get(at).copied().unwrap_or(0) as usize;
        let told = self.changes.iter().enumerate().filter_map(|(i, change)| {
            let kept = if i < promised { " (promised)" } else { "" };
            match *change {
                Change::Write { index, offset, end } if (offset..end).contains(&place) => {
                    let value = byte(self.task, index, place);
                    Some(format!("operation {index} wrote {value} in {offset}..{end}{kept}"))
                }
                Change::Truncate { size } => Some(format!("truncated to {size}{kept}")),
                Change::Write { .. } => None,
            }
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() { "never written".into() } else { told.join(", ") }
    }

    /// `None`: beyond the end of the file.
    fn judge_byte(&self, at: usize, value: Option<u8>, stale: bool) -> Result<(), Fault> {
        let promised = self.promised.get(at).copied().unwrap_or(0) as usize;
        let place = at as u64;
        let mut zero_allowed = promised == 0;
        // The newest change of this place that was promised, and all later ones.
        let mut base_seen = promised == 0;
        for (i, change) in self.changes.iter().enumerate().rev() {
            let candidate = match *change {
                Change::Write { index, offset, end } if (offset..end).contains(&place) => {
                    Some(byte(self.task, index, place))
                }
                Change::Truncate { size } if size <= place => None,
                _ => continue,
            };
            match candidate {
                Some(b) if value == Some(b) => return Ok(()),
                Some(_) => {}
                None => zero_allowed = true,
            }
            if i < promised {
                base_seen = true;
                break;
            }
        }
        // Promised before anything was written here: a hole.
        zero_allowed |= !base_seen;
        if zero_allowed && value.unwrap_or(0) == 0 {
            return Ok(());
        }
        let untouched = self.changes.len() <= promised;
        let what = format!("byte {at} is {value:?}, {}", self.story(at));
        match (promised > 0, value) {
            (true, None | Some(0)) => Err(Fault::Broken(what)),
            (true, _) if untouched || !stale => Err(Fault::Broken(what)),
            (false, Some(_)) if !stale => Err(Fault::Stale(what)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(ops: &[(u64, u64)]) -> Content {
        let mut c = Content::new(1);
        for (i, (offset, len)) in ops.iter().enumerate() {
            c.write(i, *offset, *len);
        }
        c
    }

    #[test]
    fn what_was_promised_must_be_there() {
        let mut c = written(&[(0, 100)]);
        assert_eq!(c.judge(&[], false), Ok(()));
        assert_eq!(c.judge(&[0; 50], false), Ok(()));
        c.promise_all();
        let data = c.data.clone();
        assert_eq!(c.judge(&data, false), Ok(()));
        assert!(matches!(c.judge(&data[..99], false), Err(Fault::Broken(_))));
        let mut hole = data.clone();
        hole[5] = 0;
        assert!(matches!(c.judge(&hole, true), Err(Fault::Broken(_))));
        // Overwritten since: either will do, zeros will not.
        c.write(1, 0, 10);
        assert_eq!(c.judge(&data, false), Ok(()));
        let new = c.data.clone();
        assert_eq!(c.judge(&new, false), Ok(()));
        assert!(c.judge(&hole, false).is_err());
    }

    #[test]
    fn stale_bytes_are_told() {
        let c = written(&[(0, 8)]);
        let mut found = c.data.clone();
        found[3] ^= 0x40;
        assert!(matches!(c.judge(&found, false), Err(Fault::Stale(_))));
        assert_eq!(c.judge(&found, true), Ok(()));
    }

    #[test]
    fn a_truncation_allows_zeros_and_a_promised_one_demands_them() {
        let mut c = written(&[(0, 100)]);
        c.promise_all();
        let old = c.data.clone();
        c.truncate(10);
        c.truncate(100);
        let new = c.data.clone();
        assert_eq!(c.judge(&old, false), Ok(()));
        assert_eq!(c.judge(&new, false), Ok(()));
        c.promise_all();
        assert!(c.judge(&old, false).is_err());
        assert_eq!(c.judge(&new, false), Ok(()));
    }
}
