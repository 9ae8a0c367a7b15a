//! SHA-256, as hexadecimal digits.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Digits of the sum of a line: enough against accidents, and short beside the line.
const SUM_BYTES: usize = 8;

/// The SHA-256 of a file's contents.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut digest) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            // OK to index: a reader reads no more than it was given room for.
            n => digest.update(&buffer[..n]),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Whether it is a SHA-256 as it is written here.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The sum of a line of the results of a plan.
pub(crate) fn line_sum(plan: &str, line: &[u8]) -> String {
    let digest = Sha256::new().chain_update(plan).chain_update(line).finalize();
    // OK to index: the digest has 32 bytes.
    hex(&digest[..SUM_BYTES])
}

/// A number for a name, the same on every machine.
pub(crate) fn number_of(name: &str) -> u64 {
    let digest = Sha256::digest(name);
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
