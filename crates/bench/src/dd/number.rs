//! Sizes and counts: digits, a suffix, and products of two of them (`2x80K`): of more dd 9.1 says
//! that they are no numbers.

use super::errno::Errno;

/// A number that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) value: u64,
    /// It begins with "0x", which multiplies by zero and was perhaps meant as hexadecimal.
    pub(super) zero_product: bool,
}

/// Why a text is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoNumber {
    /// It is none.
    Invalid,
    /// It is too large.
    TooLarge,
}

impl NoNumber {
    /// The error number that is printed with it.
    pub(super) fn errno(self) -> Option<Errno> {
        (self == NoNumber::TooLarge).then_some(Errno::OVERFLOW)
    }
}

/// Numbers are offsets: 63 bits.
const MAX: u64 = i64::MAX as u64;

/// Reads a number: digits with a suffix, or a product of two such.
pub(super) fn read(text: &str) -> Result<Number, NoNumber> {
    let (first, behind) = factor(text, true)?;
    let second = match behind.strip_prefix('x') {
        Some(more) => factor(more, false)?,
        None => (Some(1), behind),
    };
    if !second.1.is_empty() {
        return Err(NoNumber::Invalid);
    }
    // What is too large stays so, unless it is multiplied by zero.
    let value = match (first, second.0) {
        (Some(0), _) | (_, Some(0)) => 0,
        (Some(a), Some(b)) => a.checked_mul(b).filter(|p| *p <= MAX).ok_or(NoNumber::TooLarge)?,
        _ => return Err(NoNumber::TooLarge),
    };
    Ok(Number { value, zero_product: value == 0 && text.starts_with("0x") })
}

/// The first factor (`None`: too large) and what follows it. With `bytes` a B may stand behind it.
fn factor(text: &str, bytes: bool) -> Result<(Option<u64>, &str), NoNumber> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let digits_from = text.strip_prefix('+').unwrap_or(text);
    let end = digits_from.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits_from.len());
    let (digits, behind) = digits_from.split_at(end);
    let count = if digits.is_empty() {
        // A suffix alone counts one.
        if digits_from.len() != text.len() || !behind.starts_with(SUFFIXES) {
            return Err(NoNumber::Invalid);
        }
        Some(1)
    } else {
        digits.parse::<u64>().ok()
    };
    let Some((unit, behind)) = suffix(behind) else { return Err(NoNumber::Invalid) };
    // A B behind it says that bytes are meant; the caller looks for it.
    let behind = match behind.strip_prefix('B') {
        Some(more) if bytes && !text[..text.len() - behind.len()].ends_with('B') => more,
        _ => behind,
    };
    let value = count.and_then(|c| c.checked_mul(unit?)).filter(|v| *v <= MAX);
    Ok((value.or(if count == Some(0) { Some(0) } else { None }), behind))
}

const SUFFIXES: [char; 11] = ['b', 'c', 'E', 'G', 'k', 'K', 'M', 'P', 'T', 'w', 'Y'];

/// The multiplier of the suffix that a text begins with (`None`: more than any number), and what
/// follows it.
fn suffix(text: &str) -> Option<(Option<u64>, &str)> {
    let Some(first) = text.chars().next() else { return Some((Some(1), text)) };
    let rest = &text[first.len_utf8()..];
    let power = match first {
        'c' => return Some((Some(1), rest)),
        'w' => return Some((Some(2), rest)),
        'b' => return Some((Some(512), rest)),
        'K' => 1,
        letter => match "kMGTPEZY".find(letter) {
            // OK to cast: one of eight.
            Some(power) => power as u32 + 1,
            None => return Some((Some(1), text)),
        },
    };
    let (base, rest) = match rest.strip_prefix("iB") {
        Some(rest) => (1024_u64, rest),
        None => match rest.strip_prefix(['B', 'D']) {
            Some(rest) => (1000, rest),
            None => (1024, rest),
        },
    };
    Some((base.checked_pow(power), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_and_products() {
        for (text, value) in [
            ("512", 512),
            ("4k", 4096),
            ("4kB", 4000),
            ("4KiB", 4096),
            ("1M", 1 << 20),
            ("1MB", 1_000_000),
            ("2b", 1024),
            ("3w", 6),
            ("3c", 3),
            ("10B", 10),
            ("k", 1024),
            ("2x80K", 163_840),
            ("2Bx3", 6),
            ("2x3kB", 6000),
            ("0", 0),
            (" +7", 7),
            ("0x99999999999999999999", 0),
        ] {
            assert_eq!(read(text).map(|n| n.value), Ok(value), "{text}");
        }
        assert!(read("0x10").unwrap().zero_product);
        assert!(!read("00x10").unwrap().zero_product);
    }

    #[test]
    fn what_is_no_number() {
        for text in [
            "", "-1", "x", "4q", "1.5M", "4kk", "10BB", "2x", "m", "5xx5", "2x3x4", "0x1x2",
            "2x3B", "2x3bB",
        ] {
            assert_eq!(read(text), Err(NoNumber::Invalid), "{text}");
        }
        for text in ["99999999999999999999", "9E", "1Z", "4Gx4G"] {
            assert_eq!(read(text), Err(NoNumber::TooLarge), "{text}");
        }
    }
}
