//! Reading: member by member, contents in pieces.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::ops::Range;

use steadfast_vfs::{FileType, Timestamp};

use crate::acl::{self, ACCESS_ACL, DEFAULT_ACL};
use crate::header::{BLOCK, Header, NoNumber};
use crate::member::{Member, MemberKind};
use crate::records::Records;
use crate::sparse::{self, PIECES_MAX, Pieces};
use crate::{RECORDS_MAX, Result, TarError};

/// How compressed files begin, and what unpacks them.
const COMPRESSED: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "zcat"),
    (b"BZh", "bzcat"),
    (b"\xfd7zXZ\0", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "zstdcat"),
    (b"\x04\x22\x4d\x18", "lz4cat"),
];

/// An archive that is read from its beginning to its end.
pub struct Reader<R> {
    input: R,
    /// Bytes read so far.
    at: u64,
    /// Bytes of the present member that are still to come, and those that fill up its last block.
    left: u64,
    filling: u64,
    /// Where they belong in the file.
    pieces: VecDeque<Range<u64>>,
    /// What holds for all members that follow (pax, type g).
    global: Records,
    /// Whether the two blocks of zeros were met.
    has_end: bool,
}

/// What stands in front of a member's own header.
#[derive(Default)]
struct EarlierRecords {
    records: Records,
    long_path: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

impl<R: Read> Reader<R> {
    /// An archive from here on.
    pub fn new(input: R) -> Reader<R> {
        Reader {
            input,
            at: 0,
            left: 0,
            filling: 0,
            pieces: VecDeque::new(),
            global: Records::default(),
            has_end: false,
        }
    }

    /// Whether its end was marked as one: if not, it may have been cut off between two members.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// The next member; what was not read of the one before is skipped. `None` at the end.
    ///
    /// # Errors
    /// It cannot be read, or not from here on.
    pub fn next_member(&mut self) -> Result<Option<Member>> {
        if self.has_end {
            return Ok(None);
        }
        self.skip()?;
        let mut before = EarlierRecords::default();
        loop {
            let is_first = self.at == 0;
            let Some(header) = self.header()? else { return Ok(None) };
            if header.is_zero() {
                self.has_end = true;
                return Ok(None);
            }
            if !header.is_whole() {
                return Err(self.no_header(&header, is_first));
            }
            let size = match header.size().ok().and_then(|size| u64::try_from(size).ok()) {
                Some(size) => size,
                None => return Err(self.damaged("a header without a size")),
            };
            match header.kind() {
                b'x' | b'X' => before.records = self.records(size)?,
                b'g' => {
                    let records = self.records(size)?;
                    self.global = self.global.joined(&records);
                    let most = usize::try_from(RECORDS_MAX).unwrap_or(usize::MAX);
                    if self.global.to_bytes().len() > most {
                        return Err(self.damaged("more records for all members than are taken"));
                    }
                }
                b'L' => before.long_path = Some(self.long(size)?),
                b'K' => before.long_link = Some(self.long(size)?),
                // A volume's name.
                b'V' => self.contents_of(size)?,
                b'M' => {
                    return Err(self.damaged("the archive goes on from another one: join them"));
                }
                _ => return self.member(&header, before, size).map(Some),
            }
            self.skip()?;
        }
    }

    /// The next data of the present member: fills `buffer` from its beginning. Where it belongs in
    /// the file, and how much there is; `None` at its end.
    ///
    /// # Errors
    /// It cannot be read, or is cut off.
    pub fn data(&mut self, buffer: &mut [u8]) -> Result<Option<(u64, usize)>> {
        let Some(piece) = self.pieces.front_mut() else { return Ok(None) };
        let len = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX).min(buffer.len());
        let at = piece.start;
        piece.start += len as u64;
        if piece.start >= piece.end {
            self.pieces.pop_front();
        }
        self.left = self.left.saturating_sub(len as u64);
        if let Some(buffer) = buffer.get_mut(..len) {
            self.fill(buffer, "a file's contents")?;
        }
        Ok(Some((at, len)))
    }

    /// A member by its header.
    fn member(&mut self, header: &Header, before: EarlierRecords, size: u64) -> Result<Member> {
        let records = self.global.joined(&before.records);
        let size = match records.number("size") {
            Ok(own) => own.unwrap_or(size),
            Err(what) => return Err(self.damaged(&what)),
        };
        let named = before.long_path.unwrap_or_else(|| header.path());
        let path = records.get("GNU.sparse.name").or_else(|| records.get("path"));
        let mut member = Member::new(path.unwrap_or(&named));
        let link = before.long_link.unwrap_or_else(|| header.link());
        let link = records.get("linkpath").map(<[u8]>::to_vec).unwrap_or(link);
        let kind = kind(header, link, &member.path);
        let is_file = matches!(kind, Ok(MemberKind::File));
        // Only a file has contents; that a link says how large the file is means nothing. But what
        // is not known may have some.
        let has_contents = is_file || kind.is_err() || header.kind() == b'D';
        self.contents_of(if has_contents { size } else { 0 })?;
        let told = kind.and_then(|kind| {
            member.kind = kind;
            attributes(&mut member, header, &records)
        });
        let mapped = match is_file {
            true => self.place(header, &records, size)?,
            false => Ok((0, Vec::new())),
        };
        match told.and(mapped) {
            Ok((size, pieces)) => {
                member.size = size;
                self.pieces = pieces.into();
            }
            Err(why) => member.refused = Some(why),
        }
        Ok(member)
    }

    /// A file's size and where its data lies, or what of that makes no sense.
    fn place(
        &mut self,
        header: &Header,
        records: &Records,
        stored: u64,
    ) -> Result<std::result::Result<(u64, Pieces), String>> {
        let (size, pieces) = if header.kind() == b'S' {
            let (mut pairs, mut more) = header.pieces();
            while more {
                let block = Header(self.block("the map of a sparse file")?);
                let (further, again) = block.more_pieces();
                pairs.extend(further);
                more = again;
                if pairs.len() > PIECES_MAX {
                    return Err(self.damaged("a sparse file of too many pieces"));
                }
            }
            let size = header.real_size().map_err(no_number);
            let size = size.and_then(|n| u64::try_from(n).map_err(|_| "a size below 0".into()));
            match size.and_then(|size| Ok((size, sparse::checked(&pairs, size)?))) {
                Ok(placed) => placed,
                Err(what) => return Ok(Err(what)),
            }
        } else {
            let found = match sparse::of_records(records) {
                Ok(Some(found)) => found,
                Ok(None) if stored == 0 => return Ok(Ok((0, Vec::new()))),
                Ok(None) => return Ok(Ok((stored, vec![0..stored]))),
                Err(what) => return Ok(Err(what)),
            };
            let pieces = match found.pieces {
                Some(pieces) => Ok(pieces),
                None => sparse::in_front(found.size, || {
                    let Some(left) = self.left.checked_sub(BLOCK as u64) else {
                        return Err(self.damaged("a sparse file's map is longer than the file"));
                    };
                    self.left = left;
                    self.block("the map of a sparse file")
                })?,
            };
            match pieces {
                Ok(pieces) => (found.size, pieces),
                Err(what) => return Ok(Err(what)),
            }
        };
        let data: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
        if data != self.left {
            let left = self.left;
            return Ok(Err(format!("its map of holes is for {data} bytes, and it has {left}")));
        }
        Ok(Ok((size, pieces)))
    }

    /// From here on so many bytes are the present member's.
    fn contents_of(&mut self, size: u64) -> Result<()> {
        let filled = size.checked_next_multiple_of(BLOCK as u64);
        let Some(filled) = filled else { return Err(self.damaged("a size beyond all bounds")) };
        (self.left, self.filling) = (size, filled - size);
        self.pieces.clear();
        Ok(())
    }

    /// Skips what is left of the present member.
    fn skip(&mut self) -> Result<()> {
        let skipped = self.left.saturating_add(self.filling);
        (self.left, self.filling) = (0, 0);
        self.pieces.clear();
        let mut part = (&mut self.input).take(skipped);
        let passed = std::io::copy(&mut part, &mut std::io::sink())?;
        self.at += passed;
        if passed < skipped {
            return Err(TarError::CutOff { at: self.at, within: "a file's contents".into() });
        }
        Ok(())
    }

    fn records(&mut self, size: u64) -> Result<Records> {
        let bytes = self.short(size, "records")?;
        Records::parse(&bytes).map_err(|what| self.damaged(what))
    }

    fn long(&mut self, size: u64) -> Result<Vec<u8>> {
        let mut name = self.short(size, "a long name")?;
        if let Some(end) = name.iter().position(|byte| *byte == 0) {
            name.truncate(end);
        }
        Ok(name)
    }

    /// Contents that are no file's, whole.
    fn short(&mut self, size: u64, what: &str) -> Result<Vec<u8>> {
        if size > RECORDS_MAX {
            return Err(self.damaged(&format!("{what} of {size} bytes: at most {RECORDS_MAX}")));
        }
        self.contents_of(size)?;
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(size).read_to_end(&mut bytes)?;
        self.at += read as u64;
        if (read as u64) < size {
            return Err(TarError::CutOff { at: self.at, within: what.into() });
        }
        self.left = 0;
        Ok(bytes)
    }

    /// The next header; `None` where the input ends instead.
    fn header(&mut self) -> Result<Option<Header>> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.input.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => {
                    if self.at == 0 {
                        return Err(self.no_header(&Header(block), true));
                    }
                    let at = self.at + filled as u64;
                    return Err(TarError::CutOff { at, within: "a header".into() });
                }
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.at += BLOCK as u64;
        Ok(Some(Header(block)))
    }

    fn block(&mut self, within: &str) -> Result<[u8; BLOCK]> {
        let mut block = [0; BLOCK];
        self.fill(&mut block, within)?;
        Ok(block)
    }

    fn fill(&mut self, buffer: &mut [u8], within: &str) -> Result<()> {
        match self.input.read_exact(buffer) {
            Ok(()) => {
                self.at += buffer.len() as u64;
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                Err(TarError::CutOff { at: self.at, within: within.into() })
            }
            Err(e) => Err(e.into()),
        }
    }

    fn damaged(&self, what: &str) -> TarError {
        TarError::Damaged { at: self.at, what: what.into() }
    }

    /// What a block is that is no header.
    fn no_header(&self, block: &Header, is_first: bool) -> TarError {
        let found = COMPRESSED.iter().find(|(magic, _)| is_first && block.0.starts_with(magic));
        match found {
            Some((_, with)) => TarError::Compressed { with },
            None if is_first => TarError::Damaged { at: 0, what: "this is no tar archive".into() },
            None => {
                let at = self.at - BLOCK as u64;
                let what = "no header where one must be: the archive is damaged from here on";
                TarError::Damaged { at, what: what.into() }
            }
        }
    }
}

fn no_number(NoNumber(field): NoNumber) -> String {
    format!("its {field} is no number")
}

/// What kind of object it is.
fn kind(header: &Header, link: Vec<u8>, path: &[u8]) -> std::result::Result<MemberKind, String> {
    let device = || -> std::result::Result<u64, String> {
        let (major, minor) = header.device().map_err(no_number)?;
        let halves = u32::try_from(major).ok().zip(u32::try_from(minor).ok());
        let (major, minor) = halves.ok_or("a device whose number cannot be")?;
        Ok(u64::from(major) << 32 | u64::from(minor))
    };
    Ok(match header.kind() {
        // EarlierRecords POSIX a directory was a file whose name ends so.
        b'0' | 0 if path.ends_with(b"/") => MemberKind::Directory,
        b'0' | 0 | b'7' | b'S' => MemberKind::File,
        b'1' => MemberKind::HardLink(link),
        b'2' => MemberKind::Symlink(link),
        b'3' => MemberKind::CharDevice(device()?),
        b'4' => MemberKind::BlockDevice(device()?),
        b'5' | b'D' => MemberKind::Directory,
        b'6' => MemberKind::Fifo,
        other => return Err(format!("of type '{}', which is not known", other.escape_ascii())),
    })
}

/// Puts in what holds for all kinds.
fn attributes(
    member: &mut Member,
    header: &Header,
    records: &Records,
) -> std::result::Result<(), String> {
    let id = |key: &str, field: std::result::Result<i64, NoNumber>| {
        let number = match records.number(key)? {
            Some(number) => u32::try_from(number).ok(),
            None => u32::try_from(field.map_err(no_number)?).ok(),
        };
        number.ok_or_else(|| format!("its {key} has more than 32 bits"))
    };
    member.uid = id("uid", header.uid())?;
    member.gid = id("gid", header.gid())?;
    // Beside the permissions some programs write the type.
    let mode = header.mode().map_err(no_number)? & 0o7777;
    member.mode = u16::try_from(mode).unwrap_or_default();
    member.mtime = match records.time("mtime")? {
        Some(time) => time,
        None => Timestamp { secs: header.mtime().map_err(no_number)?, nanos: 0 },
    };
    member.atime = records.time("atime")?;
    member.xattrs = records.xattrs();
    for (key, name) in [("SCHILY.acl.access", ACCESS_ACL), ("SCHILY.acl.default", DEFAULT_ACL)] {
        let is_there = member.xattrs.iter().any(|(there, _)| there == name);
        let Some(text) = records.get(key).filter(|_| !is_there) else { continue };
        match acl::from_text(text) {
            Ok(value) => member.xattrs.push((name.to_vec(), value)),
            Err(why) => {
                if name == ACCESS_ACL
                    && let Some(group) = acl::group_of_text(text)
                {
                    member.mode = member.mode & !0o070 | (member.mode & group << 3);
                }
                member.not_kept.push((name.to_vec(), why));
            }
        }
    }
    Ok(())
}

impl MemberKind {
    /// The same as the file system has it; a hard link is what it is another name of.
    pub fn file_type(&self) -> Option<FileType> {
        Some(match self {
            MemberKind::File => FileType::Regular,
            MemberKind::HardLink(_) => return None,
            MemberKind::Symlink(_) => FileType::Symlink,
            MemberKind::Directory => FileType::Directory,
            MemberKind::CharDevice(_) => FileType::CharDevice,
            MemberKind::BlockDevice(_) => FileType::BlockDevice,
            MemberKind::Fifo => FileType::Fifo,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Writer;

    fn archive() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        let folder = Member { kind: MemberKind::Directory, mode: 0o755, ..Member::new(b"a") };
        writer.begin(&folder, &[]).unwrap();
        let file = Member { size: 600, ..Member::new(&[b"a/".to_vec(), vec![b'n'; 200]].concat()) };
        writer.begin(&file, &[0..600]).unwrap();
        writer.data(&[b'x'; 600]).unwrap();
        let holes = Member { size: 1 << 40, ..Member::new(b"a/holes") };
        writer.begin(&holes, &[4096..4099]).unwrap();
        writer.data(b"abc").unwrap();
        let link = MemberKind::HardLink(b"a/holes".to_vec());
        writer.begin(&Member { kind: link, ..Member::new(b"b") }, &[]).unwrap();
        writer.finish().unwrap()
    }

    /// A member, and its data by place.
    type WholeMember = (Member, Vec<(u64, Vec<u8>)>);

    /// All of an archive.
    fn all(bytes: &[u8]) -> Result<Vec<WholeMember>> {
        let mut reader = Reader::new(bytes);
        let mut members = Vec::new();
        while let Some(member) = reader.next_member()? {
            let mut data = Vec::new();
            let mut buffer = [0; 256];
            while let Some((at, len)) = reader.data(&mut buffer)? {
                data.push((at, buffer[..len].to_vec()));
            }
            members.push((member, data));
        }
        Ok(members)
    }

    #[test]
    fn what_is_written_is_read() {
        let members = all(&archive()).unwrap();
        assert_eq!(members.len(), 4);
        assert_eq!(members[0].0.kind, MemberKind::Directory);
        assert_eq!((members[1].0.path.len(), members[1].1.len()), (202, 3));
        assert_eq!((members[2].0.size, members[2].0.path.as_slice()), (1 << 40, &b"a/holes"[..]));
        assert_eq!(members[2].1, [(4096, b"abc".to_vec())]);
        assert_eq!(members[3].0.kind, MemberKind::HardLink(b"a/holes".to_vec()));
    }

    #[test]
    fn a_part_of_it_is_cut_off_or_ends_between_members() {
        let whole = archive();
        let mut cut_off = 0;
        for len in (1..whole.len() - 1024).step_by(37) {
            match all(&whole[..len]) {
                Err(TarError::CutOff { at, .. }) => {
                    assert!(at <= len as u64);
                    cut_off += 1;
                }
                Err(TarError::Damaged { at: 0, .. }) => assert!(len < BLOCK),
                Err(e) => panic!("{len}: {e}"),
                Ok(_) => assert_eq!(len % BLOCK, 0),
            }
        }
        assert!(cut_off > 50);
    }

    /// Any single byte: an error or other members, no panic, and no more memory than there is data.
    #[test]
    fn damage_is_an_error_or_another_archive() {
        let whole = archive();
        for at in 0..whole.len() {
            for value in [0, 0xff, b'7', b' '] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                // OK to ignore: what is found in it may be anything.
                let _ = all(&bytes);
            }
        }
    }

    #[test]
    fn what_is_no_archive_is_named() {
        let said = |bytes: &[u8]| all(bytes).unwrap_err().to_string();
        assert!(said(b"\x1f\x8b\x08").contains("zcat"));
        assert!(said(&[7; 5000]).contains("no tar archive"));
        assert!(all(b"").unwrap().is_empty());
        let mut header = Header::new(b'L');
        header.set_size(1 << 40);
        assert!(said(&header.finished()).contains("a long name of 1099511627776 bytes"));
        let mut header = Header::new(b'0');
        header.set_size(u64::MAX >> 1);
        assert!(said(&header.finished()).contains("cut off"));
    }
}
