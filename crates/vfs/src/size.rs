//! Sizes with units, as in command lines.

/// Why a text is no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It is no number with a unit.
    #[error("not a size; write a number with k, m, g or t (powers of 1024)")]
    NotASize,
    /// It has more bytes than 64 bits can count.
    #[error("too large: at most 16777215t (k, m, g and t are powers of 1024)")]
    TooLarge,
}

/// Bytes from `512`, `64k`, `256m`, `4g`, `1t` (powers of 1024).
///
/// # Errors
/// It is none, or too large.
///
/// ```
/// use steadfast_vfs::size::{self, SizeError};
///
/// assert_eq!(size::parse("64m"), Ok(64 << 20));
/// assert_eq!(size::parse("a lot"), Err(SizeError::NotASize));
/// assert_eq!(size::parse("99999999999g"), Err(SizeError::TooLarge));
/// ```
pub fn parse(text: &str) -> Result<u64, SizeError> {
    if text.contains(char::is_whitespace) {
        return Err(SizeError::NotASize);
    }
    parse_size::Config::new().with_binary().parse_size(text).map_err(|e| match e {
        parse_size::Error::PosOverflow => SizeError::TooLarge,
        _ => SizeError::NotASize,
    })
}

/// The shortest way to write a number of bytes: `512m`.
pub fn shown(bytes: u64) -> String {
    let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    let fits = |shift: &u32| bytes > 0 && bytes.is_multiple_of(1 << shift);
    match units.iter().find(|(shift, _)| fits(shift)) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_binary() {
        assert_eq!(parse("512"), Ok(512));
        assert_eq!(parse("256m"), Ok(256 << 20));
        assert_eq!(parse("4G"), Ok(4 << 30));
        for text in ["many", "", " 1m", "1m ", "1 m", "-1"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["512m", "3k", "1t", "4097", "0"] {
            assert_eq!(shown(parse(text).unwrap()), text);
        }
    }
}
