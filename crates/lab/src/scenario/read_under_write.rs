//! `workload.read_under_write` of a scenario file: a file is read while another is written.

use serde::Deserialize;
use steadfast_setup::form::{Fields, FormValue, Value};
use steadfast_setup::{single_values, table};

use super::line_error::LineError;

table! {
    /// A file is read while another is written flat out.
    pub struct ReadUnderWriteSpec: "workload.read_under_write", check ReadUnderWriteSpec::check {
        /// The writer, which is run repeatedly: `dd if=/dev/zero of=NAME bs=BYTES count=N`.
        storm: Storm;
        /// File that is read, in MiB.
        file_mb: u64 = 16, from 1 to 4096;
        /// What a read(2) asks for, in KiB; how far is read ahead is the machine's.
        read_kb: u64 = 4, from 4 to 16384;
        /// Where that file is: `other`, an ext2 on the other half of the disk, `same`, the file
        /// system that is written to, or both.
        places: Vec<ReadFile> = ["other"];
        /// Reads in each place under the writer, each of a file that nobody has read.
        trials: u64 = 20, from 1 to 100000;
        /// As many without `--full`.
        quick_trials: Option<u64>, else "`trials`", from 1 to 100000;
        /// Reads before there is a writer.
        idle_trials: u64 = 3, from 1 to 1000;
        /// Seconds of writing before the first read.
        settle_s: f64 = 10.0, from 0 to 3600;
        /// Mean pause before each read, in seconds.
        pause_s: f64 = 1.0, from 0 to 3600;
    }
}

impl ReadUnderWriteSpec {
    fn check(fields: &Fields<'_>, _: Option<&ReadUnderWriteSpec>) {
        let places: Option<Vec<ReadFile>> = fields.get("places");
        let twice = |p: &[ReadFile]| p.len() > 1 && p[0] == p[1];
        if places.is_some_and(|p| p.is_empty() || p.len() > 2 || twice(&p)) {
            fields.wrong("places", "it is one or both of `other` and `same`", "");
        }
    }

    /// [`file_mb`](Self::file_mb) in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_mb << 20
    }

    /// [`read_kb`](Self::read_kb) in bytes.
    pub fn read_bytes(&self) -> u64 {
        self.read_kb << 10
    }
}

/// Where the file is that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadFile {
    /// In another file system on the same disk.
    Other,
    /// In the one that is written to.
    Same,
}

single_values!(ReadFile);

impl ReadFile {
    /// Both.
    pub const ALL: [ReadFile; 2] = [ReadFile::Other, ReadFile::Same];

    /// The name of its test.
    pub fn test(self) -> &'static str {
        match self {
            ReadFile::Other => "read, other file system",
            ReadFile::Same => "read, same file system",
        }
    }
}

/// A dd(1) that is run again and again: zeros into one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storm {
    /// The command, as published.
    pub line: String,
    /// `of=`.
    pub file: String,
    /// `bs=`, in bytes.
    pub block_bytes: u64,
    /// `count=`.
    pub count: u64,
}

impl Value for Storm {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let line: String = place.single()?;
        let help = "a dd(1) that writes zeros";
        Storm::parse(&line).map_err(|e| place.wrong_line(&line, &e.to_string(), help)).ok()
    }
}

impl Storm {
    /// Reads the command; zeros from /dev/zero into a file, `bs=` at a time, `count=` times.
    ///
    /// # Errors
    /// What of it is something else.
    pub fn parse(line: &str) -> Result<Storm, LineError> {
        let mut words = line.split_whitespace();
        if words.next() != Some("dd") {
            return Err(LineError::NotDd);
        }
        let (mut file, mut block_bytes, mut count) = (None, None, None);
        for word in words {
            let number =
                |v: &str| v.parse::<u64>().map_err(|_| LineError::NoNumber(word.to_owned()));
            match word.split_once('=') {
                Some(("if", "/dev/zero")) => {}
                Some(("of", name)) if !name.is_empty() && !name.contains('/') => file = Some(name),
                Some(("bs", n)) => block_bytes = Some(number(n)?),
                Some(("count", n)) => count = Some(number(n)?),
                _ => return Err(LineError::NotOfWriter(word.to_owned())),
            }
        }
        let storm = Storm {
            line: line.split_whitespace().collect::<Vec<_>>().join(" "),
            file: file.ok_or(LineError::Missing("of="))?.to_owned(),
            block_bytes: block_bytes.ok_or(LineError::Missing("bs="))?,
            count: count.ok_or(LineError::Missing("count="))?,
        };
        let fits = storm.block_bytes.is_multiple_of(512)
            && (512..=16 << 20).contains(&storm.block_bytes)
            && (4 << 20) % storm.block_bytes == 0;
        if !fits {
            return Err(LineError::BlockSize);
        }
        if storm.count == 0 {
            return Err(LineError::NothingWritten);
        }
        Ok(storm)
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.block_bytes.saturating_mul(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_writer_is_read_and_others_are_refused() {
        let line = "dd if=/dev/zero of=largefile bs=16384 count=131072";
        let storm = Storm::parse(line).unwrap();
        assert_eq!((storm.bytes(), storm.file.as_str()), (2 << 30, "largefile"));
        let refused =
            |from: &str, to: &str| Storm::parse(&line.replace(from, to)).unwrap_err().to_string();
        assert!(refused("/dev/zero", "/dev/sda").contains("if=/dev/sda"));
        assert!(refused("largefile", "a/b").contains("of=a/b"));
        assert!(refused("bs=16384", "").contains("bs= is missing"));
        assert!(refused("16384", "1000").contains("power of two"));
        assert!(refused("131072", "0").contains("nothing"));
        assert!(refused("131072", "1x").contains("count=1x"));
        assert!(refused("dd ", "cp ").contains("dd"));
    }
}
