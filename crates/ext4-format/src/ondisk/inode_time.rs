//! Times of an inode: 32 bits of seconds, and an extra word whose two low bits extend the
//! seconds and whose upper 30 hold nanoseconds (`ext4_encode_extra_time`).

use steadfast_vfs::Timestamp;

/// The first second that does not fit: 2446-05-10 22:38:56 UTC.
const END: i64 = (3 << 32) + (1 << 31);

/// The two words for a time. Times that do not fit become the nearest that does.
pub fn encode(t: Timestamp) -> (u32, u32) {
    let secs = t.secs.clamp(i64::from(i32::MIN), END - 1);
    let low = secs as i32;
    let epoch = ((secs - i64::from(low)) >> 32) as u32 & 3;
    // At either end the kernel keeps no parts of a second (`timestamp_truncate`).
    let at_the_end = secs == i64::from(i32::MIN) || secs == END - 1;
    let nanos = if at_the_end { 0 } else { t.nanos.min(999_999_999) };
    (low as u32, epoch | nanos << 2)
}

/// The time of a word of seconds alone. Times that do not fit become the nearest that does.
pub fn encode_short(t: Timestamp) -> u32 {
    t.secs.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32 as u32
}

/// The time in the two words; without an extra word, whole seconds from 1901 to 2038.
#[inline]
pub fn decode(seconds: u32, extra: Option<u32>) -> Timestamp {
    let low = i64::from(seconds as i32);
    match extra {
        None => Timestamp { secs: low, nanos: 0 },
        // Two bits of nanoseconds too many can only come from damage.
        Some(x) => {
            Timestamp { secs: low + (i64::from(x & 3) << 32), nanos: (x >> 2).min(999_999_999) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_epochs_go_both_ways() {
        // The table in the kernel's Documentation/filesystems/ext4/inodes.rst.
        let cases = [
            (-1, 0xffff_ffff, 0),
            (0, 0, 0),
            (0x7fff_ffff, 0x7fff_ffff, 0),
            (0x8000_0000, 0x8000_0000, 1),
            (0xffff_ffff, 0xffff_ffff, 1),
            (0x1_0000_0000, 0, 1),
            (0x1_8000_0000, 0x8000_0000, 2),
            (0x2_8000_0000, 0x8000_0000, 3),
            (0x3_7fff_fffe, 0x7fff_fffe, 3),
        ];
        for (secs, word, epoch) in cases {
            let t = Timestamp { secs, nanos: 123_456_789 };
            assert_eq!(encode(t), (word, epoch | 123_456_789 << 2), "{secs}");
            assert_eq!(decode(word, Some(epoch | 123_456_789 << 2)), t);
        }
        let late = encode(Timestamp { secs: i64::MAX, nanos: u32::MAX });
        assert_eq!(decode(late.0, Some(late.1)).secs, END - 1);
        assert_eq!(decode(u32::MAX, None).secs, -1);
    }
}
