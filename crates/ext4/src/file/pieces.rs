//! A range of a file as pieces that lie together on the device.

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, Request};
use steadfast_ext4_format::Result;
use steadfast_ext4_format::extents::Lookup;

use super::gather::Source;
use crate::extents::find_extent;
use crate::meta::{MetaLog, Parts, Txn};
use crate::state::Inode;

/// Where a piece is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PieceSource {
    /// On the device, at this byte.
    Device(u64),
    /// Allocated at this byte of the device, but never written.
    Unwritten(u64),
    /// Nowhere: it reads as zeros.
    Hole,
    /// In the log, not yet at home.
    Image(Bytes),
}

/// Part of a file, `len` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Byte offset in the file.
    pub offset: u64,
    pub len: u64,
    pub place: PieceSource,
}

impl Parts {
    /// The pieces of `[from, to)` bytes of a file, in order and without gaps. Looks into the
    /// transaction if there is one, else takes the metadata lock only for what the cached mapping
    /// lacks.
    pub(crate) fn pieces(
        &self,
        inode: &Inode,
        from: u64,
        to: u64,
        txn: Option<&Txn<'_>>,
    ) -> Result<Vec<Piece>> {
        let size = self.volume.block_size();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = from;
        while at < to {
            // OK to cast: files end below 2^32 blocks.
            let logical = (at / size) as u32;
            let (end, start) = match self.find_block(inode, logical, txn)? {
                Lookup::Mapped(e) => {
                    let byte = (e.start + u64::from(logical - e.logical)) * size + at % size;
                    let place = if e.unwritten {
                        PieceSource::Unwritten(byte)
                    } else {
                        PieceSource::Device(byte)
                    };
                    (e.end(), place)
                }
                Lookup::Hole { until } => (until, PieceSource::Hole),
            };
            let len = (end * size).min(to) - at;
            match pieces.last_mut() {
                Some(last) if last.continues_with(&start) => last.len += len,
                _ => pieces.push(Piece { offset: at, len, place: start }),
            }
            at += len;
        }
        Ok(pieces)
    }

    pub(super) fn find_block(
        &self,
        inode: &Inode,
        logical: u32,
        txn: Option<&Txn<'_>>,
    ) -> Result<Lookup> {
        if let Some(txn) = txn {
            return find_extent(txn, inode.no, logical);
        }
        {
            let state = inode.state();
            if let Some(extent) = state.map.get(logical) {
                return Ok(Lookup::Mapped(extent));
            }
            if state.map.is_beyond(logical) {
                return Ok(Lookup::Hole { until: 1 << 32 });
            }
        }
        self.with_blocks(|| find_extent(&self.look_yielding(), inode.no, logical))
    }
}

/// Replaces what has a newer image in the log by that image. `size`: bytes a block.
pub(crate) fn with_images(log: &MetaLog, size: u64, pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let PieceSource::Device(start) = piece.place else {
            out.push(piece);
            continue;
        };
        let mut at = 0;
        while at < piece.len {
            let byte = start + at;
            let len = (size - byte % size).min(piece.len - at);
            let skip = (byte % size) as usize;
            let image = log.image(byte / size);
            let place = match image {
                Some(image) => PieceSource::Image(image.slice(skip..skip + len as usize)),
                None => PieceSource::Device(byte),
            };
            match out.last_mut() {
                Some(last) if Piece::continues_with(last, &place) => last.len += len,
                _ => out.push(Piece { offset: piece.offset + at, len, place }),
            }
            at += len;
        }
    }
    out
}

/// Starts reading a piece, whose offset is a multiple of the device's sector. `keep` bytes
/// of it count, the rest are to be zeros.
pub(crate) fn read_piece(device: &dyn BlockDevice, piece: &Piece, keep: u64) -> Source {
    let (len, keep) = (piece.len as usize, keep as usize);
    match &piece.place {
        PieceSource::Hole | PieceSource::Unwritten(_) => Source::Zeros(len),
        PieceSource::Image(bytes) => Source::Bytes { bytes: bytes.clone(), len, keep },
        PieceSource::Device(offset) => {
            let sector = u64::from(device.info().logical_block);
            let read = Request::Read { offset: *offset, len: piece.len.next_multiple_of(sector) };
            let completion: Completion = device.submit(read);
            Source::Device { completion, len, keep }
        }
    }
}

impl Piece {
    fn continues_with(&self, next: &PieceSource) -> bool {
        match (&self.place, next) {
            (PieceSource::Device(a), PieceSource::Device(b))
            | (PieceSource::Unwritten(a), PieceSource::Unwritten(b)) => a + self.len == *b,
            (PieceSource::Hole, PieceSource::Hole) => true,
            _ => false,
        }
    }
}

pub(crate) fn all_in_place(pieces: &[Piece]) -> bool {
    pieces.iter().all(|p| matches!(p.place, PieceSource::Device(_)))
}
