//! Numbers and sizes on the command line.

use super::UsageError;

/// IOzone's largest record: its transfer buffer.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 20;

/// A size: kB, or with k, m or g behind the number kB, MB or GB (powers of 1024). In bytes.
pub(super) fn bytes(option: &str, text: &str) -> Result<u64, UsageError> {
    let (digits, unit) = match text.as_bytes().last().map(u8::to_ascii_lowercase) {
        Some(b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1 << 10),
    };
    digits.parse::<u64>().ok().filter(|n| *n > 0).and_then(|n| n.checked_mul(unit)).ok_or_else(
        || {
            let form = "a number of kB, or a number with k, m or g behind it";
            UsageError::new(255, format!("{option}: \"{text}\" is not a size ({form})"))
        },
    )
}

/// A number from `min` to `max`.
pub(super) fn number(option: &str, text: &str, min: u64, max: u64) -> Result<u64, UsageError> {
    match text.parse() {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        _ => Err(UsageError::new(
            255,
            format!("{option}: \"{text}\" is not a number from {min} to {max}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, expected) in
            [("64", 64 << 10), ("64k", 64 << 10), ("16m", 16 << 20), ("4G", 4 << 30)]
        {
            assert_eq!(bytes("-s", text), Ok(expected), "{text}");
        }
        for text in ["", "k", "0", "-1", "4t", "1.5g", "99999999999999999999", "99999999999999999g"]
        {
            assert!(bytes("-s", text).is_err(), "{text}");
        }
    }
}
