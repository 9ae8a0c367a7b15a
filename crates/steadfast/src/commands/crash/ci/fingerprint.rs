//! What a finding is recognised by in another run: a digest of its words, without all that differs
//! from run to run.

use sha2::{Digest, Sha256};

/// Digits of a fingerprint, of four bits each.
const DIGITS: usize = 16;
/// Folders that judges get, up to what is drawn of their names.
const FOLDER: &str = "steadfast-crash-";
/// A word of so many hexadecimal digits, one of them below ten, is taken for a number or a hash.
const HASH_LEAST: usize = 4;
/// Digits of a hash that its folder is called by, as git has it.
const FOLDER_DIGITS: usize = 2;

/// The fingerprint of what these texts say together. It is kept in files of users: another way to
/// make it makes all their findings new ones.
pub fn of(texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| without_changing(text)).collect();
    let digest = Sha256::digest(texts.join("\n"));
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits[..DIGITS].to_owned()
}

/// A text with `#` for each number, hash and name of a temporary folder of ours.
fn without_changing(text: &str) -> String {
    let mut pieces = text.split(FOLDER);
    let mut masked = pieces.next().map(without_numbers).unwrap_or_default();
    for piece in pieces {
        // It may be masked already.
        let is_drawn = |c: char| c.is_ascii_alphanumeric() || c == '#';
        let drawn = piece.find(|c: char| !is_drawn(c)).unwrap_or(piece.len());
        masked.push_str(FOLDER);
        masked.push('#');
        masked.push_str(&without_numbers(&piece[drawn..]));
    }
    masked
}

fn without_numbers(text: &str) -> String {
    let (mut masked, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        // The folder of a hash begins with its first digits.
        let next = after.strip_prefix('/').unwrap_or_default();
        let next = next.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        match word.len() == FOLDER_DIGITS && is_hex(word) && is_hash(next) {
            true => masked.push('#'),
            false => masked.push_str(&masked_word(word)),
        }
        let between = after.chars().next().map_or(0, char::len_utf8);
        masked.push_str(&after[..between]);
        rest = &after[between..];
    }
    masked
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_hash(word: &str) -> bool {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    has_digit && word.len() >= HASH_LEAST && is_hex(word)
}

fn masked_word(word: &str) -> String {
    if is_hash(word) || word.strip_prefix("0x").is_some_and(is_hex) {
        return "#".into();
    }
    let mut masked = String::new();
    for c in word.chars() {
        match c {
            '0'..='9' if masked.ends_with('#') => {}
            '0'..='9' => masked.push('#'),
            c => masked.push(c),
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_run_says_the_same() {
        let same = [
            ["settings: 0 bytes", "settings: 14 bytes"],
            ["row 0x7f is torn", "row 0xa0 is torn"],
            [".git/objects/fe/dfa256ca8423", ".git/objects/9c/01b2c3d4e5f6"],
            [".git/objects/17/dfa256ca8423 is empty", ".git/objects/9c/01b2c3d4e5f6 is empty"],
            ["/dev/shm/steadfast-crash-Ab1Xyz/tree/f", "/dev/shm/steadfast-crash-ZZZZZZ/tree/f"],
            ["/dev/shm/steadfast-crash-#/tree/f", "/dev/shm/steadfast-crash-ZZZZZZ/tree/f"],
            ["wal-000001.log", "wal-12.log"],
        ];
        for [one, other] in same {
            assert_eq!(of(&[one]), of(&[other]), "{one} {other}");
        }
        let another = [
            ["settings: gone", "settings: empty"],
            ["a: replaced", "b: replaced"],
            ["dead: gone", "beef: gone"],
        ];
        for [one, other] in another {
            assert_ne!(of(&[one]), of(&[other]), "{one} {other}");
        }
        // It stands in files of users.
        assert_eq!(of(&["judge", "settings: 7 bytes"]).len(), DIGITS);
    }
}
