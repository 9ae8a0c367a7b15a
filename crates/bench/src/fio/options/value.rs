//! Numbers, sizes, times and the like, as fio reads them.

/// What the prefixes of a size mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SizePrefixes {
    /// k is 1024 and ki 1000, for the sake of old files.
    #[default]
    Binary,
    /// k is 1000 and ki 1024.
    Standard,
}

/// A number, or a size in bytes: `4096`, `0x1000`, `4k`, `1MiB`, also a product `2*4k`.
pub(super) fn int(text: &str, prefixes: SizePrefixes) -> Result<u64, String> {
    let mut product: u64 = 1;
    for factor in text.split('*') {
        let factor = factor.trim();
        let one = one_int(factor, prefixes).ok_or_else(|| not_a_number(text))?;
        let one = one.ok_or_else(|| format!("'{text}' is too large"))?;
        product = product.checked_mul(one).ok_or_else(|| format!("'{text}' is too large"))?;
    }
    Ok(product)
}

fn not_a_number(text: &str) -> String {
    format!("'{text}' is not a number; with k, m, g, t or p behind it it is a size")
}

/// `None`: it is none; `Some(None)`: it is too large.
fn one_int(text: &str, prefixes: SizePrefixes) -> Option<Option<u64>> {
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        let is_hex = !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
        return is_hex.then(|| u64::from_str_radix(hex, 16).ok());
    }
    let end = lower.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(lower.len());
    let (digits, unit) = lower.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let (letter, has_i) = match unit.strip_suffix('i') {
        Some(letter) => (letter, true),
        None => (unit, false),
    };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == letter)?;
    if power == 0 && has_i {
        return None;
    }
    let base: u64 = match (prefixes, has_i) {
        (SizePrefixes::Binary, false) | (SizePrefixes::Standard, true) => 1024,
        _ => 1000,
    };
    // OK to cast: below 6.
    let unit = base.pow(power as u32);
    Some(digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)))
}

/// A time in nanoseconds; a number alone is in units of `unit_ns`.
pub(super) fn time(text: &str, unit_ns: u64) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let end = lower.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(lower.len());
    let (digits, unit) = lower.split_at(end);
    let unit = match unit.trim() {
        "" => unit_ns,
        "us" | "usec" => 1000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(format!("'{text}' is not a time; a number with us, ms, s, m, h or d")),
    };
    let number = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    number.ok_or_else(|| match digits {
        "" => format!("'{text}' is not a time; a number with us, ms, s, m, h or d"),
        _ => format!("'{text}' is too long a time"),
    })
}

/// 1 and 0, also true and false.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        _ => Err(format!("'{text}' is not 1 or 0")),
    }
}

/// A number from `least` to `most`.
pub(super) fn within(text: &str, least: u64, most: u64) -> Result<u64, String> {
    match int(text, SizePrefixes::Binary)? {
        n if (least..=most).contains(&n) => Ok(n),
        _ => Err(format!("'{text}' is not from {least} to {most}")),
    }
}

/// Two with `-` or `:` between them, the smaller first; one alone is both.
pub(super) fn range(
    text: &str,
    read: impl Fn(&str) -> Result<u64, String>,
) -> Result<(u64, u64), String> {
    let (from, to) = match text.split_once(['-', ':']) {
        Some((from, to)) => (read(from.trim())?, read(to.trim())?),
        None => (read(text)?, read(text)?),
    };
    Ok((from.min(to), from.max(to)))
}

/// Values for reads, writes and trims with commas between them. What is left out is as the one
/// before; the first, as it was.
pub(super) fn by_direction<T: Clone>(
    text: &str,
    was: &T,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<[T; 2], String> {
    let mut parts = text.split(',').map(str::trim);
    let one = |part: Option<&str>, before: &T| match part {
        None | Some("") => Ok(before.clone()),
        Some(part) => read(part),
    };
    let reads = one(parts.next(), was)?;
    let writes = one(parts.next(), &reads)?;
    // That of trims is looked at, and not used.
    one(parts.next(), &writes)?;
    match parts.next() {
        None => Ok([reads, writes]),
        Some(_) => Err(format!("'{text}' has more than three values: reads, writes, trims")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_fios() {
        for (text, bytes) in [
            ("4096", 4096),
            ("0x1000", 4096),
            ("4k", 4096),
            ("4KB", 4096),
            ("4kib", 4000),
            ("4ki", 4000),
            ("1m", 1 << 20),
            ("2*4k", 8192),
            ("1p", 1 << 50),
            ("0", 0),
        ] {
            assert_eq!(int(text, SizePrefixes::Binary), Ok(bytes), "{text}");
        }
        assert_eq!(int("4k", SizePrefixes::Standard), Ok(4000));
        assert_eq!(int("4KiB", SizePrefixes::Standard), Ok(4096));
        for text in ["", "k", "-1", "4x", "1.5g", "0x", "0xg", "4i", "1e3", "99999999999g", "4 k"] {
            assert!(int(text, SizePrefixes::Binary).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, unit, ns) in [
            ("10", 1_000_000_000, 10_000_000_000),
            ("10", 1000, 10_000),
            ("10ms", 1, 10_000_000),
            ("2M", 1, 120_000_000_000),
            ("5sec", 1, 5_000_000_000),
        ] {
            assert_eq!(time(text, unit), Ok(ns), "{text}");
        }
        for text in ["", "s", "5y", "-1", "99999999999d"] {
            assert!(time(text, 1).is_err(), "{text}");
        }
    }

    #[test]
    fn directions_inherit() {
        let read = |text: &str| int(text, SizePrefixes::Binary);
        assert_eq!(by_direction("4k", &1, read), Ok([4096, 4096]));
        assert_eq!(by_direction("4k,8k", &1, read), Ok([4096, 8192]));
        assert_eq!(by_direction(",8k", &1, read), Ok([1, 8192]));
        assert_eq!(by_direction("4k,,8k", &1, read), Ok([4096, 4096]));
        assert!(by_direction("1,2,3,4", &1, read).is_err());
        assert_eq!(range("8k-4k", read), Ok((4096, 8192)));
        assert_eq!(range("4k:8k", read), Ok((4096, 8192)));
    }
}
