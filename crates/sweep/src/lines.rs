//! Lines of a file, in bounded memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::{Result, SweepError};

/// Bytes of a line, at most: a case's result is a document of some kilobytes.
pub(crate) const LINE_MAX: u64 = 16 << 20;
/// A merge reads many files at a time.
const BUFFER: usize = 16 << 10;
/// Bytes of a line that are not given back before the next is read.
const KEPT: usize = 64 << 10;

/// Reads a file line by line.
pub(crate) struct LineReader {
    path: PathBuf,
    reader: BufReader<File>,
    /// Where the next line begins.
    offset: u64,
    /// The number of the line that was read last, from 1.
    number: u64,
    line: Vec<u8>,
}

impl LineReader {
    pub fn open(path: &Path) -> Result<LineReader> {
        LineReader::open_at(path, 0, 0)
    }

    /// From a place where a line begins; `number`: lines before it.
    pub fn open_at(path: &Path, offset: u64, number: u64) -> Result<LineReader> {
        let mut file = File::open(path).map_err(|e| SweepError::io(path, e))?;
        // A pipe has no place to go to, and no second pass.
        if !file.metadata().map_err(|e| SweepError::io(path, e))?.is_file() {
            return Err(SweepError::not_a_file(path));
        }
        file.seek(SeekFrom::Start(offset)).map_err(|e| SweepError::io(path, e))?;
        let reader = BufReader::with_capacity(BUFFER, file);
        Ok(LineReader { path: path.into(), reader, offset, number, line: Vec::new() })
    }

    /// The next whole line, without its end. `None`: there is none; what follows the last end of a
    /// line was cut off, and [`Self::rest`] says whether there is such.
    pub fn read(&mut self) -> Result<Option<&[u8]>> {
        self.line.clear();
        // Of many files that are read side by side each would keep its longest.
        self.line.shrink_to(KEPT);
        let mut bounded = self.reader.by_ref().take(LINE_MAX + 1);
        let read = bounded.read_until(b'\n', &mut self.line);
        let read = read.map_err(|e| SweepError::io(&self.path, e))?;
        if self.line.pop_if(|last| *last == b'\n').is_none() {
            return match read as u64 > LINE_MAX {
                true => {
                    Err(SweepError::LongLine { path: self.path.clone(), line: self.number + 1 })
                }
                false => Ok(None),
            };
        }
        self.offset += read as u64;
        self.number += 1;
        Ok(Some(&self.line))
    }

    /// After the last whole line: whether bytes follow.
    pub fn has_rest(&self) -> bool {
        !self.line.is_empty()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn number(&self) -> u64 {
        self.number
    }
}

/// JSON in ASCII: the same bytes wherever it passes through, and nothing that a terminal would
/// obey.
pub(crate) fn ascii(json: String) -> String {
    if json.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return json;
    }
    let mut text = String::with_capacity(json.len() * 2);
    for c in json.chars() {
        match c {
            ' '..='~' => text.push(c),
            // Outside of texts JSON has none of these, so it is in one.
            _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                text.push_str(&format!("\\u{unit:04x}"));
            }),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_same_in_ascii() {
        let value = serde_json::json!({ "a\u{9b}": ["\u{1f980}\u{7f}", "z\n"] });
        let text = ascii(value.to_string());
        assert_eq!(text, r#"{"a\u009b":["\ud83e\udd80\u007f","z\n"]}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
