//! One header block: fields at their places (POSIX.1, ustar; GNU's beside them).

use std::ops::Range;

/// Bytes of a block; everything begins at a multiple of it.
pub(crate) const BLOCK: usize = 512;

const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const UID: Range<usize> = 108..116;
const GID: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const MTIME: Range<usize> = 136..148;
const CHECKSUM: Range<usize> = 148..156;
const TYPE: usize = 156;
const LINK: Range<usize> = 157..257;
const MAGIC: Range<usize> = 257..265;
const MAJOR: Range<usize> = 329..337;
const MINOR: Range<usize> = 337..345;
const PREFIX: Range<usize> = 345..500;
/// GNU's: four pieces of a sparse file, whether more follow, and the size with holes.
const SPARSE: Range<usize> = 386..482;
const EXTENDED: usize = 482;
const REAL_SIZE: Range<usize> = 483..495;
/// In a block of more pieces: 21 of them, and whether more follow.
const MORE_PIECES: Range<usize> = 0..504;
const MORE_EXTENDED: usize = 504;

const USTAR: &[u8; 8] = b"ustar\x0000";
const GNU: &[u8; 8] = b"ustar  \x00";

/// A header.
#[derive(Clone)]
pub(crate) struct Header(pub [u8; BLOCK]);

/// A field that holds no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoNumber(pub &'static str);

impl Header {
    /// One to be written, of ustar's kind.
    pub fn new(kind: u8) -> Header {
        let mut header = Header([0; BLOCK]);
        header.0[TYPE] = kind;
        header.0[MAGIC].copy_from_slice(USTAR);
        header
    }

    /// Whether it is all zeros: two such blocks end an archive.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|byte| *byte == 0)
    }

    /// The sum of its bytes, unsigned and (as some old programs made it) signed.
    fn sums(&self) -> (i64, i64) {
        let bytes = self.0.iter().enumerate();
        bytes.fold((0, 0), |(unsigned, signed), (at, byte)| {
            let byte = if CHECKSUM.contains(&at) { b' ' } else { *byte };
            (unsigned + i64::from(byte), signed + i64::from(byte.cast_signed()))
        })
    }

    /// Whether the checksum is right.
    pub fn is_whole(&self) -> bool {
        let (unsigned, signed) = self.sums();
        number(&self.0[CHECKSUM]).is_some_and(|sum| sum == unsigned || sum == signed)
    }

    fn is_gnu(&self) -> bool {
        self.0[MAGIC] == *GNU
    }

    pub fn kind(&self) -> u8 {
        self.0[TYPE]
    }

    pub fn path(&self) -> Vec<u8> {
        let name = text(&self.0[NAME]);
        let prefix = text(&self.0[PREFIX]);
        // GNU has other fields there.
        if self.is_gnu() || prefix.is_empty() || !self.0[MAGIC].starts_with(b"ustar\0") {
            return name.to_vec();
        }
        [prefix, b"/", name].concat()
    }

    pub fn link(&self) -> Vec<u8> {
        text(&self.0[LINK]).to_vec()
    }

    fn field(&self, at: Range<usize>, name: &'static str) -> Result<i64, NoNumber> {
        number(&self.0[at]).ok_or(NoNumber(name))
    }

    pub fn mode(&self) -> Result<i64, NoNumber> {
        self.field(MODE, "mode")
    }

    pub fn uid(&self) -> Result<i64, NoNumber> {
        self.field(UID, "owner")
    }

    pub fn gid(&self) -> Result<i64, NoNumber> {
        self.field(GID, "group")
    }

    pub fn size(&self) -> Result<i64, NoNumber> {
        self.field(SIZE, "size")
    }

    pub fn mtime(&self) -> Result<i64, NoNumber> {
        self.field(MTIME, "time")
    }

    /// Major and minor number of a device.
    pub fn device(&self) -> Result<(i64, i64), NoNumber> {
        Ok((self.field(MAJOR, "major number")?, self.field(MINOR, "minor number")?))
    }

    /// The size with holes of a GNU sparse file.
    pub fn real_size(&self) -> Result<i64, NoNumber> {
        self.field(REAL_SIZE, "size")
    }

    /// The pieces in a GNU sparse file's header, and whether more follow.
    pub fn pieces(&self) -> (Vec<(i64, i64)>, bool) {
        (pieces(&self.0[SPARSE]), self.0[EXTENDED] != 0)
    }

    /// The same of a block of more pieces.
    pub fn more_pieces(&self) -> (Vec<(i64, i64)>, bool) {
        (pieces(&self.0[MORE_PIECES]), self.0[MORE_EXTENDED] != 0)
    }

    /// Puts the path in. Whether it fits.
    pub fn set_path(&mut self, path: &[u8]) -> bool {
        put_text(&mut self.0[NAME], path)
    }

    /// Puts a link's target in. Whether it fits.
    pub fn set_link(&mut self, target: &[u8]) -> bool {
        put_text(&mut self.0[LINK], target)
    }

    pub fn set_mode(&mut self, mode: u16) {
        put_number(&mut self.0[MODE], u64::from(mode));
    }

    /// Puts owner and group in. Whether both fit in digits.
    pub fn set_owner(&mut self, uid: u32, gid: u32) -> (bool, bool) {
        (put_number(&mut self.0[UID], uid.into()), put_number(&mut self.0[GID], gid.into()))
    }

    pub fn set_size(&mut self, size: u64) -> bool {
        put_number(&mut self.0[SIZE], size)
    }

    /// Puts whole seconds in. Whether they fit.
    pub fn set_mtime(&mut self, seconds: i64) -> bool {
        match u64::try_from(seconds) {
            Ok(seconds) => put_number(&mut self.0[MTIME], seconds),
            Err(_) => {
                put_number(&mut self.0[MTIME], 0);
                false
            }
        }
    }

    pub fn set_device(&mut self, major: u64, minor: u64) {
        put_number(&mut self.0[MAJOR], major);
        put_number(&mut self.0[MINOR], minor);
    }

    /// The block, with its checksum.
    pub fn finished(mut self) -> [u8; BLOCK] {
        let (sum, _) = self.sums();
        // Six digits, NUL, space.
        let digits = format!("{sum:06o}\0 ");
        self.0[CHECKSUM].copy_from_slice(&digits.as_bytes()[..8]);
        self.0
    }
}

/// Up to the first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Octal digits, with spaces and NULs around them, or (GNU) a big-endian number behind 0x80.
fn number(field: &[u8]) -> Option<i64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // Two's complement of seven bits in the first byte, and all of the others.
        let head = i128::from(*first & 0x3f) - i128::from(*first & 0x40);
        let value = rest
            .iter()
            .try_fold(head, |value, byte| value.checked_mul(256)?.checked_add(i128::from(*byte)))?;
        return i64::try_from(value).ok();
    }
    let is_gap = |byte: &u8| matches!(byte, b' ' | 0);
    let start = field.iter().position(|byte| !is_gap(byte)).unwrap_or(field.len());
    let digits = &field[start..];
    let end = digits.iter().position(is_gap).unwrap_or(digits.len());
    if !digits[end..].iter().all(is_gap) {
        return None;
    }
    digits[..end].iter().try_fold(0_i64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    })
}

fn pieces(table: &[u8]) -> Vec<(i64, i64)> {
    let all = table.chunks_exact(24).map(|piece| {
        // What is no number is a piece that no file can have.
        let of = |field: &[u8]| number(field).unwrap_or(-1);
        (piece.iter().all(|byte| *byte == 0), (of(&piece[..12]), of(&piece[12..])))
    });
    all.take_while(|(unused, _)| !unused).map(|(_, piece)| piece).collect()
}

/// Whether the text fits; cut off if not.
fn put_text(field: &mut [u8], text: &[u8]) -> bool {
    let len = text.len().min(field.len());
    field[..len].copy_from_slice(&text[..len]);
    len == text.len()
}

/// Octal digits and a NUL, or in base 256 what they cannot say: false then.
fn put_number(field: &mut [u8], value: u64) -> bool {
    let width = field.len() - 1;
    let digits = format!("{value:0width$o}");
    if digits.len() == width {
        field[..width].copy_from_slice(digits.as_bytes());
        return true;
    }
    let bytes = value.to_be_bytes();
    field.fill(0);
    let from = field.len().saturating_sub(bytes.len());
    let shown = field.len() - from;
    field[from..].copy_from_slice(&bytes[bytes.len() - shown..]);
    field[0] |= 0x80;
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_all_their_forms() {
        for (field, value) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"00000000", Some(0)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"77777777", Some(0o7777_7777)),
            (b"12x4567\0", None),
            (b"12 4567\0", None),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ] {
            assert_eq!(number(field), value, "{field:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut header = Header::new(b'0');
        assert!(header.set_path(b"a/b") && header.set_size(8 << 30 >> 1));
        assert!(!header.set_size(9 << 30));
        assert_eq!(header.set_owner(1000, u32::MAX), (true, false));
        let header = Header(header.finished());
        assert!(header.is_whole());
        assert_eq!((header.path(), header.size()), (b"a/b".to_vec(), Ok(9 << 30)));
        assert_eq!((header.uid(), header.gid()), (Ok(1000), Ok(i64::from(u32::MAX))));
        let mut damaged = header.clone();
        damaged.0[0] ^= 1;
        assert!(!damaged.is_whole());
    }
}
