//! A file that code is in: a program or a shared library.

use std::fs::File;
use std::ops::Range;

use framehop::{ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Unwinder, UnwinderNative};
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSection, ObjectSegment};

/// Bytes of unwind information, at the most.
const SECTION_MAX: u64 = 1 << 30;

/// A file that code is in. Addresses are those that the file itself gives its bytes.
pub struct Module {
    /// Its path, as the process has named it.
    pub path: String,
    /// It stays readable when its name is gone.
    pub file: Option<File>,
    /// Where bytes of the file lie.
    segments: Vec<FileSegment>,
    /// Says how a function is left; `None`: it is of another architecture, or no ELF file.
    pub unwinder: Option<UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>>,
}

struct FileSegment {
    in_file: Range<u64>,
    address: u64,
}

impl Module {
    /// Reads what is needed of a file; nothing is known of one that is not there.
    pub fn open(path: &str, file: Option<File>) -> Module {
        let mut module =
            Module { path: path.to_owned(), file: None, segments: Vec::new(), unwinder: None };
        if let Some(file) = file {
            let cache = file.try_clone().map(ReadCache::new);
            if let Ok(cache) = &cache {
                module.read(cache);
            }
            module.file = Some(file);
        }
        module
    }

    fn read<'d>(&mut self, data: impl ReadRef<'d>) -> Option<()> {
        let object = object::File::parse(data).ok().filter(Object::is_64)?;
        let of_segment = |segment: object::Segment<'d, '_, _>| {
            let (from, len) = segment.file_range();
            FileSegment { in_file: from..from.saturating_add(len), address: segment.address() }
        };
        self.segments = object.segments().map(of_segment).collect();
        let section = |name: &str| object.section_by_name(name);
        let range = |name: &str| {
            let section = section(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let data = |name: &str| {
            let section = section(name).filter(|section| section.size() <= SECTION_MAX)?;
            Some(section.uncompressed_data().ok()?.into_owned())
        };
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            ..ExplicitModuleSectionInfo::default()
        };
        let mut unwinder = UnwinderNative::new();
        // As if it lay where it says: one for all processes.
        unwinder.add_module(framehop::Module::new(String::new(), 0..u64::MAX, 0, sections));
        self.unwinder = Some(unwinder);
        Some(())
    }

    /// By how much more the addresses are in a process that has mapped the file from this byte on
    /// at this address.
    pub fn bias(&self, offset: u64, at: u64) -> Option<u64> {
        // The mapping begins with the page in which the segment does.
        let holds = |segment: &&FileSegment| {
            (segment.in_file.start & !0xfff..segment.in_file.end).contains(&offset)
        };
        let segments = self.segments.iter().filter(holds);
        // Two may share a page: the later one begins in it.
        let segment = segments.max_by_key(|segment| segment.in_file.start)?;
        let address = segment.address.wrapping_add(offset.wrapping_sub(segment.in_file.start));
        Some(at.wrapping_sub(address))
    }
}
