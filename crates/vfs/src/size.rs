//! Sizes as people write them.

/// Bytes from `512`, `64k`, `256m`, `4g`, `1t` (powers of 1024).
pub fn parse(text: &str) -> Result<u64, String> {
    let whole = !text.contains(char::is_whitespace);
    let bytes = parse_size::Config::new().with_binary().parse_size(text).ok().filter(|_| whole);
    bytes.ok_or_else(|| "not a size; write a number with k, m, g or t (powers of 1024)".to_owned())
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
