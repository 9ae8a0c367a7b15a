//! Bytes that are all zero.

/// What is compared at a time.
const ZEROS: [u8; 4096] = [0; 4096];

/// Whether all bytes are zero. Whole pages are compared at once, so this is quick also where the
/// caller is not optimised.
///
/// ```
/// use steadfast_block::is_zero;
///
/// assert!(is_zero(&[]) && is_zero(&[0; 5000]));
/// assert!(!is_zero(&[0, 1]));
/// ```
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|piece| piece == &ZEROS[..piece.len()])
}

#[cfg(test)]
mod tests {
    use super::is_zero;

    #[test]
    fn one_bit_anywhere_is_seen() {
        for len in [1, 4095, 4096, 4097, 9000] {
            let mut bytes = vec![0; len];
            assert!(is_zero(&bytes));
            for at in [0, len / 2, len - 1] {
                bytes[at] = 0x80;
                assert!(!is_zero(&bytes), "{len}: {at}");
                bytes[at] = 0;
            }
        }
    }
}
