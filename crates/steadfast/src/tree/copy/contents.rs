//! A file's contents: pieces of data at their places, holes left out.

use std::ops::Range;

use steadfast_vfs::{Attr, Fh, FileSystem, FsError, Ino, SetAttr};

use super::{Copy, CopyError};
use crate::tree::Side;
use crate::tree::bound::{BEYOND, SizeLimit};
use crate::tree::pieces::{CHUNK, next_data};

/// How much data the files of an image can have.
pub(in crate::tree) struct Budget {
    /// What one file can have.
    file: SizeLimit,
    /// Bytes that may still be read of all.
    all: u64,
}

/// Times the image's size that is read of it in all: files that share blocks by accident (what
/// e2fsck finds as multiply-claimed) are still worth having.
const SHARED: u64 = 4;

impl Budget {
    /// As much as the image has blocks.
    pub fn of_image(fs: &dyn FileSystem) -> Result<Self, FsError> {
        let file = SizeLimit::of(fs, Side::Image)?;
        Ok(Budget { file, all: file.bytes.saturating_mul(SHARED) })
    }

    /// For files that are what they seem.
    pub fn unlimited() -> Self {
        Budget { file: SizeLimit::NONE, all: u64::MAX }
    }
}

impl Copy<'_, '_, '_> {
    /// Copies the data of an open file to another, new one.
    pub(super) fn contents(
        &mut self,
        attr: &Attr,
        from: Fh,
        (to, made): (Fh, Ino),
    ) -> Result<(), CopyError> {
        let (mut at, mut data) = (0, 0_u64);
        let bound = self.budget.file;
        while let Some(piece) =
            next_data(self.from.fs, from, at, attr.size, bound).map_err(CopyError::From)?
        {
            let len = piece.end - piece.start;
            data = data.saturating_add(len);
            if data > bound.bytes || len > self.budget.all {
                let copied = piece.start;
                return Err(CopyError::Refused(format!("{BEYOND}; copied up to byte {copied}")));
            }
            self.budget.all -= len;
            let end = piece.end;
            at = self.piece(piece, from, to)?;
            if at < end {
                break;
            }
        }
        if at < attr.size {
            let size = SetAttr { size: Some(attr.size), ..SetAttr::default() };
            self.to.fs.setattr(made, size).map_err(CopyError::To)?;
        }
        Ok(())
    }

    /// Copies one piece; returns how far it was there.
    fn piece(&mut self, piece: Range<u64>, from: Fh, to: Fh) -> Result<u64, CopyError> {
        let mut at = piece.start;
        while at < piece.end {
            // OK to cast: at most CHUNK.
            let len = (piece.end - at).min(CHUNK) as usize;
            let mut part = self.from.fs.read(from, at, len).map_err(|e| match at {
                0 => CopyError::From(e),
                _ => CopyError::Refused(format!("{e}; copied up to byte {at}")),
            })?;
            if part.is_empty() {
                return Ok(at);
            }
            while !part.is_empty() {
                let n = self.to.fs.write(to, at, part.clone()).map_err(CopyError::To)?;
                if n == 0 {
                    return Err(CopyError::To(FsError::Io { what: format!("at byte {at}") }));
                }
                at += n as u64;
                part = part.slice(n..);
            }
        }
        Ok(at)
    }
}
