//! Names in encrypted directories, as they are shown without the key.
//!
//! Such a name is base64 (the URL alphabet, no padding) of the two hashes that the name has in
//! the index (zeros where there is none), little-endian, and its encrypted bytes; of those beyond
//! the 149th only a digest (SHA-256). It leads back to the entry, which can be looked at and
//! removed. Source: the kernel's fs/crypto/fname.c.

use sha2::{Digest, Sha256};

/// Bytes of the two hashes.
const HASHES: usize = 8;
/// Bytes of a name that are shown as they are.
const BYTES: usize = 149;
const DIGEST: usize = 32;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a shown name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NokeyName {
    /// The major hash.
    pub hash: u32,
    bytes: Vec<u8>,
    digest: Option<Vec<u8>>,
}

impl NokeyName {
    /// Takes a shown name apart; `None` if it is none.
    pub fn parse(shown: &[u8]) -> Option<NokeyName> {
        let raw = decode(shown)?;
        let (whole, cut) = (HASHES + BYTES, HASHES + BYTES + DIGEST);
        if raw.len() <= HASHES || (raw.len() > whole && raw.len() != cut) {
            return None;
        }
        let hash = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        let end = raw.len().min(whole);
        let digest = (raw.len() == cut).then(|| raw[whole..].to_vec());
        Some(NokeyName { hash, bytes: raw[HASHES..end].to_vec(), digest })
    }

    /// All the encrypted bytes, if they are known.
    pub fn whole(&self) -> Option<&[u8]> {
        self.digest.is_none().then_some(&self.bytes)
    }

    /// Whether this is the shown form of a name on disk.
    pub fn is(&self, name: &[u8]) -> bool {
        match &self.digest {
            None => name == self.bytes,
            Some(digest) => {
                name.len() > BYTES
                    && name[..BYTES] == self.bytes[..]
                    && Sha256::digest(&name[BYTES..])[..] == digest[..]
            }
        }
    }
}

/// The shown form of a name on disk.
pub fn show(major: u32, minor: u32, name: &[u8]) -> Vec<u8> {
    let mut raw = [major.to_le_bytes(), minor.to_le_bytes()].concat();
    raw.extend(&name[..name.len().min(BYTES)]);
    if name.len() > BYTES {
        raw.extend(Sha256::digest(&name[BYTES..]));
    }
    encode(&raw)
}

fn encode(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len().div_ceil(3) * 4);
    for part in raw.chunks(3) {
        let bits = (0..3).fold(0u32, |n, i| n << 8 | u32::from(*part.get(i).unwrap_or(&0)));
        let digit = |i: usize| ALPHABET[(bits >> (18 - 6 * i)) as usize & 63];
        out.extend((0..part.len() + 1).map(digit));
    }
    out
}

/// `None` if it is no base64, or has bits left over that are not zero.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for c in text {
        let digit = ALPHABET.iter().position(|a| a == c)?;
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    (bits == 0 && count < 6).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn base64_is_that_of_urls() {
        assert_eq!(encode(&[0xfb, 0xff, 0xfe, 0]), b"-__-AA");
        assert_eq!(decode(b"-__-AA"), Some(vec![0xfb, 0xff, 0xfe, 0]));
        for bad in [&b"a"[..], b"ab", b"+/", b"AA=="] {
            assert!(decode(bad).is_none_or(|d| encode(&d) == bad), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_shown_name_leads_back(
            name in prop::collection::vec(any::<u8>(), 1..256), major: u32, minor: u32,
        ) {
            let shown = show(major, minor, &name);
            prop_assert!(shown.len() <= 255);
            let parsed = NokeyName::parse(&shown).unwrap();
            prop_assert!(parsed.is(&name) && parsed.hash == major);
            prop_assert_eq!(parsed.whole().is_some(), name.len() <= 149);
            let mut other = name.clone();
            *other.last_mut().unwrap() ^= 1;
            prop_assert!(!parsed.is(&other));
        }
    }
}
