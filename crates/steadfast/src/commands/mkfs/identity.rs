//! `-U` and `-L`: a file system's UUID and label, as mke2fs takes them.

use uuid::Uuid;

use crate::Usage;

/// Longest label in bytes.
const LABEL_MAX: usize = 16;

/// A UUID in words or digits; `option` is what it was given to.
pub fn uuid(option: &str, text: &str) -> Result<Uuid, Usage> {
    match text {
        "random" | "r" => Ok(Uuid::new_v4()),
        "clear" | "null" => Ok(Uuid::nil()),
        "time" => Ok(by_time(jiff::Timestamp::now().as_nanosecond(), Uuid::new_v4())),
        digits => Uuid::parse_str(digits)
            .map_err(|e| Usage(format!("{option} {text}: {e}; or say random, time or clear"))),
    }
}

/// Version 1 (RFC 9562): the time in units of 100 ns since 1582-10-15; what else it holds comes
/// from `random`, marked as no network card's.
fn by_time(nanoseconds: i128, random: Uuid) -> Uuid {
    /// 1970-01-01, in those units.
    const EPOCH: i128 = 0x01b2_1dd2_1381_4000;
    let ticks = (nanoseconds / 100 + EPOCH) as u64;
    let mut rest = [0; 8];
    rest.copy_from_slice(&random.as_bytes()[8..]);
    rest[0] = rest[0] & 0x3f | 0x80;
    rest[2] |= 1;
    let version = 0x1000 | (ticks >> 48) as u16 & 0x0fff;
    Uuid::from_fields(ticks as u32, (ticks >> 32) as u16, version, &rest)
}

/// The label, and whether it had to be cut off.
pub fn label(text: &str) -> (&str, bool) {
    if text.len() <= LABEL_MAX {
        return (text, false);
    }
    let end = (0..=LABEL_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_in_words() {
        assert_eq!(uuid("-U", "clear").unwrap(), Uuid::nil());
        assert_eq!(uuid("-U", "random").unwrap().get_version_num(), 4);
        assert_eq!(uuid("-U", "time").unwrap().get_version_num(), 1);
        assert!(uuid("-U", "mine").unwrap_err().0.contains("mine"));
    }

    #[test]
    fn the_time_is_where_it_belongs() {
        // RFC 9562, A.1: 2022-02-22 14:22:22 -05:00.
        let id = by_time(1_645_557_742_000_000_000, Uuid::nil());
        assert!(id.to_string().starts_with("c232ab00-9414-11ec-8"), "{id}");
    }

    #[test]
    fn a_long_label_is_cut_between_letters() {
        assert_eq!(label("data"), ("data", false));
        assert_eq!(label("0123456789abcdefg"), ("0123456789abcdef", true));
        assert_eq!(label("0123456789abcde\u{e4}"), ("0123456789abcde", true));
    }
}
