//! Writing: ustar headers, with pax records in front where a field does not hold what there is.

use std::io::Write;
use std::ops::Range;

use crate::acl::{self, ACCESS_ACL, DEFAULT_ACL};
use crate::header::{BLOCK, Header};
use crate::member::{Member, MemberKind};
use crate::records::Records;
use crate::sparse;
use crate::{Result, TarError};

/// An archive that is being written.
pub struct Writer<W> {
    output: W,
    /// Bytes of the present member that are still to come, and those that fill up its last block.
    left: u64,
    filling: usize,
}

impl<W: Write> Writer<W> {
    /// An archive from here on.
    pub fn new(output: W) -> Writer<W> {
        Writer { output, left: 0, filling: 0 }
    }

    /// Begins a member. Its contents, if it is a file that has any, follow piece by piece: `pieces`
    /// says where in the file each is, in order.
    ///
    /// # Errors
    /// The output takes no more; contents of the member before are missing.
    pub fn begin(&mut self, member: &Member, pieces: &[Range<u64>]) -> Result<()> {
        self.end_member()?;
        let mut records = Records::default();
        let data: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
        let is_sparse = member.kind == MemberKind::File && data < member.size;
        let front = match is_sparse {
            true => sparse::to_front(pieces, member.size),
            false => Vec::new(),
        };
        let stored = data + front.len() as u64;
        let (code, link, device) = code(&member.kind);
        let mut header = Header::new(code);
        let mut path = member.path.clone();
        if member.kind == MemberKind::Directory && !path.ends_with(b"/") {
            path.push(b'/');
        }
        if is_sparse {
            // Whoever does not know this form extracts map and data under another name.
            records.push(b"GNU.sparse.major", b"1");
            records.push(b"GNU.sparse.minor", b"0");
            records.push(b"GNU.sparse.name", &path);
            records.push(b"GNU.sparse.realsize", member.size.to_string().as_bytes());
            path = beside(&path, b"GNUSparseFile.0");
        }
        if !header.set_path(&path) {
            records.push(b"path", &path);
        }
        if !header.set_link(link) {
            records.push(b"linkpath", link);
        }
        header.set_mode(member.mode);
        let (uid, gid) = header.set_owner(member.uid, member.gid);
        let numbers = [(uid, "uid", u64::from(member.uid)), (gid, "gid", member.gid.into())];
        for (_, key, value) in numbers.into_iter().filter(|(fits, _, _)| !fits) {
            records.push(key.as_bytes(), value.to_string().as_bytes());
        }
        if !header.set_size(stored) {
            records.push(b"size", stored.to_string().as_bytes());
        }
        if !header.set_mtime(member.mtime.secs) || member.mtime.nanos != 0 {
            records.push_time("mtime", member.mtime);
        }
        if let Some(device) = device {
            header.set_device(device >> 32, device & u64::from(u32::MAX));
        }
        for (name, value) in &member.xattrs {
            // As GNU tar does, in words too: each program knows one of them.
            let key = match name.as_slice() {
                ACCESS_ACL => Some("SCHILY.acl.access"),
                DEFAULT_ACL => Some("SCHILY.acl.default"),
                _ => None,
            };
            if let Some((key, text)) = key.zip(acl::to_text(value)) {
                records.push(key.as_bytes(), text.as_bytes());
            }
            records.push_xattr(name, value);
        }
        self.records(&records, &path)?;
        self.output.write_all(&header.finished())?;
        self.output.write_all(&front)?;
        self.left = data;
        self.filling = filling(data);
        Ok(())
    }

    /// The next bytes of the present member.
    ///
    /// # Errors
    /// The output takes no more; there are more than the member has.
    pub fn data(&mut self, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        self.left = self.left.checked_sub(len).ok_or_else(|| misuse("too many contents"))?;
        Ok(self.output.write_all(bytes)?)
    }

    /// Ends the archive, and hands the output back, flushed.
    ///
    /// # Errors
    /// The output takes no more; contents of the last member are missing.
    pub fn finish(mut self) -> Result<W> {
        self.end_member()?;
        self.output.write_all(&[0; 2 * BLOCK])?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn end_member(&mut self) -> Result<()> {
        if self.left > 0 {
            return Err(misuse("contents are missing"));
        }
        self.output.write_all(&[0; BLOCK][..self.filling])?;
        self.filling = 0;
        Ok(())
    }

    /// Writes records as a member of their own in front of the one that they are about.
    fn records(&mut self, records: &Records, path: &[u8]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let bytes = records.to_bytes();
        let mut header = Header::new(b'x');
        // Cut off where it is too long: a name for those who do not know records.
        header.set_path(&beside(path, b"PaxHeaders"));
        header.set_mode(0o644);
        header.set_owner(0, 0);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        self.output.write_all(&header.finished())?;
        self.output.write_all(&bytes)?;
        self.output.write_all(&[0; BLOCK][..filling(bytes.len() as u64)])?;
        Ok(())
    }
}

/// What fills up the last block.
fn filling(bytes: u64) -> usize {
    // OK to cast: less than a block.
    (bytes.next_multiple_of(BLOCK as u64) - bytes) as usize
}

fn misuse(what: &str) -> TarError {
    std::io::Error::other(format!("a member of the archive: {what}")).into()
}

/// The type in a header, a link's target and a device's number.
fn code(kind: &MemberKind) -> (u8, &[u8], Option<u64>) {
    match kind {
        MemberKind::File => (b'0', b"", None),
        MemberKind::HardLink(target) => (b'1', target, None),
        MemberKind::Symlink(target) => (b'2', target, None),
        MemberKind::CharDevice(number) => (b'3', b"", Some(*number)),
        MemberKind::BlockDevice(number) => (b'4', b"", Some(*number)),
        MemberKind::Directory => (b'5', b"", None),
        MemberKind::Fifo => (b'6', b"", None),
    }
}

/// The path with a folder put in before its last name.
fn beside(path: &[u8], folder: &[u8]) -> Vec<u8> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let name = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    [&path[..name], folder, b"/", &path[name..]].concat()
}
