//! Bytes that are all zero.

use bytes::Bytes;

/// Zeros that everybody shares: as much as most requests ask for.
static SHARED: [u8; 1 << 20] = [0; 1 << 20];

/// So many zeros. Up to a MiB they are the same memory for all, and cost nothing.
///
/// ```
/// assert_eq!(steadfast_block::zeros(3), &[0, 0, 0][..]);
/// ```
pub fn zeros(len: usize) -> Bytes {
    match SHARED.get(..len) {
        Some(zeros) => Bytes::from_static(zeros),
        None => Bytes::from(vec![0; len]),
    }
}

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
    use super::{is_zero, zeros};

    #[test]
    fn as_many_as_asked_for() {
        for len in [0, 1, 4096, 1 << 20, (1 << 20) + 1] {
            assert!(zeros(len).len() == len && is_zero(&zeros(len)));
        }
        assert_eq!(zeros(512).as_ptr(), zeros(4096).as_ptr(), "no memory of its own");
    }

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
