//! SHA-256 (FIPS 180-4), for the few bytes of a long encrypted name.

/// The digest.
pub(super) fn sha256(message: &[u8]) -> [u8; 32] {
    let (round, mut state) = constants();
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.as_chunks::<64>().0 {
        compress(&mut state, block, &round);
    }
    let mut digest = [0; 32];
    for (to, word) in digest.chunks_exact_mut(4).zip(state) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// The first 32 fractional bits of the cube roots of the first 64 primes, and of the square roots
/// of the first 8.
fn constants() -> ([u32; 64], [u32; 8]) {
    let (mut cubes, mut squares) = ([0; 64], [0; 8]);
    let is_prime = |n: &u128| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    for (i, prime) in (2u128..).filter(is_prime).take(64).enumerate() {
        cubes[i] = root(prime << 96, 3) as u32;
        if i < squares.len() {
            squares[i] = root(prime << 64, 2) as u32;
        }
    }
    (cubes, squares)
}

/// The whole part of a root.
fn root(n: u128, power: u32) -> u64 {
    let (mut low, mut high) = (0u64, 1 << 37);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match u128::from(middle).checked_pow(power) {
            Some(p) if p <= n => low = middle,
            _ => high = middle - 1,
        }
    }
    low
}

fn compress(state: &mut [u32; 8], block: &[u8; 64], round: &[u32; 64]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for i in 16..64 {
        let (x, y) = (w[i - 15], w[i - 2]);
        let low = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
        let high = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
        w[i] = w[i - 16].wrapping_add(low).wrapping_add(w[i - 7]).wrapping_add(high);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for i in 0..64 {
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let one = h.wrapping_add(sum).wrapping_add(choice);
        let one = one.wrapping_add(round[i]).wrapping_add(w[i]);
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = sum.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(one));
        (d, c, b, a) = (c, b, a, one.wrapping_add(two));
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *old = old.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(message: &[u8]) -> String {
        sha256(message).iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn known_digests() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let a_million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(hex(b""), empty);
        assert_eq!(hex(b"abc"), abc);
        assert_eq!(hex(&vec![b'a'; 1_000_000]), a_million);
    }
}
