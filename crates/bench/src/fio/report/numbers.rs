//! Numbers with at most four digits and a prefix, as fio writes them.

/// What the prefixes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefixes {
    /// Ki, Mi, Gi: 1024.
    Binary,
    /// k, M, G: 1000.
    Decimal,
}

/// Digits of a number.
const DIGITS: u32 = 4;

/// `value` and its unit: `11.5MiB`, `2933`, `256k`.
pub(super) fn shown(value: f64, prefixes: Prefixes, unit: &str) -> String {
    let (base, names) = match prefixes {
        Prefixes::Binary => (1024.0, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]),
        Prefixes::Decimal => (1000.0, ["", "k", "M", "G", "T", "P", "E"]),
    };
    let (mut scaled, mut at) = (value, 0);
    while scaled.round() >= 10f64.powi(DIGITS as i32) && at + 1 < names.len() {
        (scaled, at) = (scaled / base, at + 1);
    }
    let whole = if scaled < 1.0 { 1 } else { scaled.log10() as u32 + 1 };
    // With a point one digit less has room.
    let decimals =
        if at == 0 || scaled.fract() == 0.0 { 0 } else { (DIGITS - 1).saturating_sub(whole) };
    format!("{scaled:.*}{}{unit}", decimals as usize, names[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, prefixes, unit, text) in [
            (2933.0, Prefixes::Decimal, "", "2933"),
            (256_000.0, Prefixes::Decimal, "", "256k"),
            (85_333.0, Prefixes::Decimal, "", "85.3k"),
            (12_012_000.0, Prefixes::Binary, "B/s", "11.5MiB/s"),
            (12_012_000.0, Prefixes::Decimal, "B/s", "12.0MB/s"),
            (1_048_576_000.0, Prefixes::Binary, "B/s", "1000MiB/s"),
            (540_672.0, Prefixes::Binary, "B", "528KiB"),
            (0.0, Prefixes::Binary, "B", "0B"),
        ] {
            assert_eq!(shown(value, prefixes, unit), text);
        }
    }
}
