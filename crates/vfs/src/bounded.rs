//! Files of the host that are read whole: of at most so many bytes, because what is named may be a
//! device without an end, or a file that somebody else has made large.
//!
//! ```
//! use steadfast_vfs::bounded;
//!
//! let file = tempfile::NamedTempFile::new()?;
//! std::fs::write(&file, "text")?;
//! assert_eq!(bounded::text(file.path(), 4)?, "text");
//! let error = bounded::read(file.path(), 3).unwrap_err();
//! assert_eq!(error.to_string(), "it is longer than 3 bytes, and no more is read");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Bytes of a file of settings that a person writes, at most.
pub const SETTINGS_MAX: u64 = 1 << 20;

/// A file's bytes.
///
/// # Errors
/// As reading; also if there are more than `most`.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_from(File::open(path)?, most)
}

/// The same of a file that is open, from where it is.
///
/// # Errors
/// As for [`read`].
pub fn read_from(file: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what = format!("it is longer than {}, and no more is read", size(most));
        return Err(Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// A file's text.
///
/// # Errors
/// As for [`read`]; it is no UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String> {
    let text = String::from_utf8(read(path, most)?);
    text.map_err(|_| Error::new(ErrorKind::InvalidData, "it is no text in UTF-8"))
}

fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = |(shift, _): &(u32, &str)| bytes >> shift > 0 && bytes.trailing_zeros() >= *shift;
    match units.into_iter().find(fits) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read(Path::new("/dev/zero"), 64 << 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it is longer than 64 KiB, and no more is read");
        assert_eq!(read_from(&[1; 8][..], 8).unwrap().len(), 8);
        assert!(read_from(&[1; 9][..], 8).unwrap_err().to_string().contains("8 bytes"));
    }
}
