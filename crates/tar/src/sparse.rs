//! Where a sparse file's data lies: GNU tar's four forms.
//!
//! * old GNU: pieces in the header (type S), and in blocks that follow it;
//! * pax 0.0: pairs of the records `GNU.sparse.offset` and `GNU.sparse.numbytes`;
//! * pax 0.1: one record `GNU.sparse.map` with numbers between commas;
//! * pax 1.0: lines of numbers in front of the contents, filled up to a block.

use std::ops::Range;

use crate::header::BLOCK;
use crate::records::Records;

/// Pieces of one file, at the most.
pub(crate) const PIECES_MAX: usize = 1 << 20;

/// Data at its places, in order.
pub(crate) type Pieces = Vec<Range<u64>>;

/// What the records say of a sparse file.
pub(crate) struct SparseRecords {
    /// Its size with holes.
    pub size: u64,
    /// Its pieces; `None`: they are in front of its contents.
    pub pieces: Option<Pieces>,
}

/// What of it makes no sense.
type Wrong = String;

/// Reads what the records say; `None` if it is no sparse file.
pub(crate) fn of_records(records: &Records) -> Result<Option<SparseRecords>, Wrong> {
    let size = match records.number("GNU.sparse.realsize")? {
        Some(size) => Some(size),
        None => records.number("GNU.sparse.size")?,
    };
    let Some(size) = size else { return Ok(None) };
    if let Some(major) = records.number("GNU.sparse.major")? {
        let minor = records.number("GNU.sparse.minor")?.unwrap_or(0);
        return match (major, minor) {
            (1, 0) => Ok(Some(SparseRecords { size, pieces: None })),
            _ => Err(format!("its holes are written in form {major}.{minor}, which is not known")),
        };
    }
    let pairs = match records.get("GNU.sparse.map") {
        Some(map) => {
            let numbers: Vec<i64> = map
                .split(|byte| *byte == b',')
                .map(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
                .collect::<Option<_>>()
                .ok_or("its map of holes has no numbers")?;
            numbers.chunks(2).map(|pair| (pair[0], *pair.get(1).unwrap_or(&-1))).collect()
        }
        None => pairs_of_records(records)?,
    };
    Ok(Some(SparseRecords { size, pieces: Some(checked(&pairs, size)?) }))
}

fn pairs_of_records(records: &Records) -> Result<Vec<(i64, i64)>, Wrong> {
    let mut pairs = Vec::new();
    let mut offset = None;
    for (key, value) in records.iter() {
        let number = || std::str::from_utf8(value).ok()?.parse::<i64>().ok();
        match key {
            b"GNU.sparse.offset" => offset = Some(number().ok_or("a hole without a number")?),
            b"GNU.sparse.numbytes" => {
                let offset = offset.take().ok_or("data of a sparse file without a place")?;
                pairs.push((offset, number().ok_or("a hole without a number")?));
            }
            _ => {}
        }
    }
    Ok(pairs)
}

/// The pieces as ranges, if they are in order, inside the file and no more than any file has.
pub(crate) fn checked(pairs: &[(i64, i64)], size: u64) -> Result<Pieces, Wrong> {
    let mut pieces: Pieces = Vec::new();
    let mut end = 0;
    for (offset, len) in pairs {
        let place = u64::try_from(*offset).ok().zip(u64::try_from(*len).ok());
        let piece = place.and_then(|(at, len)| Some(at..at.checked_add(len)?));
        let piece = piece.filter(|piece| piece.start >= end && piece.end <= size);
        let piece = piece.ok_or("its map of holes makes no sense")?;
        end = piece.end;
        if !piece.is_empty() {
            pieces.push(piece);
        }
    }
    Ok(pieces)
}

/// Reads the map in front of the contents, block by block as `block` hands them out.
pub(crate) fn in_front<E>(
    size: u64,
    mut block: impl FnMut() -> Result<[u8; BLOCK], E>,
) -> Result<Result<Pieces, Wrong>, E> {
    let mut numbers: Vec<i64> = Vec::new();
    let mut digits = String::new();
    loop {
        for byte in block()? {
            match byte {
                b'0'..=b'9' if digits.len() < 20 => digits.push(char::from(byte)),
                b'\n' => match digits.parse() {
                    Ok(number) => {
                        numbers.push(number);
                        digits.clear();
                    }
                    Err(_) => return Ok(Err("its map of holes has no numbers".into())),
                },
                // Behind the last number.
                _ if is_whole(&numbers) => {}
                _ => return Ok(Err("its map of holes has no numbers".into())),
            }
            if is_whole(&numbers) {
                break;
            }
        }
        match numbers.first() {
            Some(count) if !usize::try_from(*count).is_ok_and(|n| n <= PIECES_MAX) => {
                return Ok(Err(format!("its map of holes has {count} pieces: too many")));
            }
            _ if is_whole(&numbers) => break,
            _ => {}
        }
    }
    let pairs: Vec<(i64, i64)> =
        numbers[1..].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    Ok(checked(&pairs, size))
}

/// Whether the count and as many pairs are there.
fn is_whole(numbers: &[i64]) -> bool {
    let Some((count, rest)) = numbers.split_first() else { return false };
    usize::try_from(*count).is_ok_and(|count| rest.len() >= count.saturating_mul(2))
}

/// The map that goes in front of the contents, filled up to a block.
pub(crate) fn to_front(pieces: &[Range<u64>], size: u64) -> Vec<u8> {
    use std::fmt::Write;
    let ends_in_a_hole = pieces.last().is_none_or(|last| last.end < size);
    let count = pieces.len() + usize::from(ends_in_a_hole);
    let mut map = format!("{count}\n");
    for piece in pieces {
        // OK to ignore: writing to a string does not fail.
        let _ = write!(map, "{}\n{}\n", piece.start, piece.end - piece.start);
    }
    if ends_in_a_hole {
        let _ = write!(map, "{size}\n0\n");
    }
    let mut map = map.into_bytes();
    map.resize(map.len().next_multiple_of(BLOCK), 0);
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(bytes: &[u8]) -> impl FnMut() -> Result<[u8; BLOCK], ()> {
        let mut blocks: Vec<[u8; BLOCK]> =
            bytes.chunks(BLOCK).map(|block| block.try_into().unwrap()).collect();
        blocks.reverse();
        move || blocks.pop().ok_or(())
    }

    #[test]
    fn a_map_in_front_comes_back() {
        for count in [0_u64, 1, 2, 400] {
            let pieces: Pieces = (0..count).map(|n| n * 8192 + 4096..n * 8192 + 8192).collect();
            let size = count * 8192 + 100;
            let front = to_front(&pieces, size);
            assert_eq!(in_front(size, blocks(&front)), Ok(Ok(pieces)), "{count}");
        }
    }

    #[test]
    fn maps_that_make_no_sense() {
        for pairs in [&[(-1, 1)][..], &[(0, 2), (1, 1)], &[(5, 6)], &[(i64::MAX, i64::MAX)]] {
            assert!(checked(pairs, 10).is_err(), "{pairs:?}");
        }
        assert_eq!(checked(&[(0, 0), (2, 3), (10, 0)], 10), Ok(vec![2..5]));
        let with = |text: &str| {
            let mut block = text.as_bytes().to_vec();
            block.resize(BLOCK, 0);
            in_front(10, blocks(&block))
        };
        assert!(with("x\n").unwrap().is_err());
        assert!(with("99999999999\n").unwrap().is_err());
        assert!(with("1\n0\n11\n").unwrap().is_err());
        // It goes on in a block that is not there.
        let digits = "400\n".to_owned() + &"1\n".repeat(254);
        assert_eq!(with(&digits), Err(()));
    }

    #[test]
    fn maps_in_records() {
        let mut records = Records::default();
        assert!(of_records(&records).unwrap().is_none());
        records.push(b"GNU.sparse.size", b"100");
        for (at, len) in [("0", "10"), ("50", "5")] {
            records.push(b"GNU.sparse.offset", at.as_bytes());
            records.push(b"GNU.sparse.numbytes", len.as_bytes());
        }
        let read = of_records(&records).unwrap().unwrap();
        assert_eq!((read.size, read.pieces), (100, Some(vec![0..10, 50..55])));
        records.push(b"GNU.sparse.map", b"0,10,90,10");
        assert_eq!(of_records(&records).unwrap().unwrap().pieces, Some(vec![0..10, 90..100]));
        records.push(b"GNU.sparse.map", b"0,10,90");
        assert!(of_records(&records).is_err());
        records.push(b"GNU.sparse.major", b"2");
        assert!(of_records(&records).is_err());
    }
}
