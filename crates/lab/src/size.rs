//! Sizes as people write them.

/// Bytes from `512`, `64k`, `256m`, `4g`, `1t` (powers of 1024).
pub fn parse(text: &str) -> Result<u64, String> {
    parse_size::Config::new()
        .with_binary()
        .parse_size(text.trim())
        .map_err(|_| "not a size; write a number with k, m, g or t (powers of 1024)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_binary() {
        assert_eq!(parse("512"), Ok(512));
        assert_eq!(parse("256m"), Ok(256 << 20));
        assert_eq!(parse("4G"), Ok(4 << 30));
        assert!(parse("many").is_err());
    }
}
