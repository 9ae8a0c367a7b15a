//! What a path means on a stack: a file of its file system, a device of it, or one of the kernel's
//! devices that are no device.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_runtime::cpu;
use steadfast_vfs::{FileSystem, NewNode};

use super::copy::Reporter;
use super::device::DeviceEnd;
use super::ends::{Null, Random, Sink, SkipResult, Source, Zeros};
use super::errno::{Errno, always_quoted};
use super::file::{FileSink, FileSource};
use super::operands::Operands;

/// `device:@disk`: what holds the stack's file system.
pub const OWN_DISK: &str = "@disk";

/// What a path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DdPath<'a> {
    /// `host:PATH`: a file of this machine.
    Host(&'a OsStr),
    /// `device:NAME`.
    Device(&'a str),
    /// /dev/zero.
    Zero,
    /// /dev/null.
    Null,
    /// /dev/urandom, /dev/random.
    Random,
    /// A file of the file system there.
    File(&'a [u8]),
}

/// What a path means.
pub fn named(path: &OsStr) -> DdPath<'_> {
    let bytes = path.as_bytes();
    if let Some(host) = bytes.strip_prefix(b"host:") {
        return DdPath::Host(OsStr::from_bytes(host));
    }
    if let Some(name) = path.to_str().and_then(|p| p.strip_prefix("device:")) {
        return DdPath::Device(name);
    }
    match bytes {
        b"/dev/zero" => DdPath::Zero,
        b"/dev/null" => DdPath::Null,
        b"/dev/urandom" | b"/dev/random" => DdPath::Random,
        path => DdPath::File(path),
    }
}

/// A stack that is there.
pub trait DdTarget {
    /// Why something of it cannot be had at all, other than as open(2) says it.
    type Error;

    /// Its file system.
    ///
    /// # Errors
    /// It has none, or cannot be mounted.
    fn fs(&self) -> Result<Arc<dyn FileSystem>, Self::Error>;

    /// A device by its name, and what holds the file system by [`OWN_DISK`]: unmounted, with all
    /// that was written.
    ///
    /// # Errors
    /// There is none.
    fn device(&self, name: &str) -> Result<Arc<dyn BlockDevice>, Self::Error>;

    /// A file of this machine as input.
    ///
    /// # Errors
    /// There are none for this stack.
    fn host_source(&self, path: &OsStr, o: &Operands) -> Result<OpenResult<Src>, Self::Error>;

    /// A file of this machine as output, and whether all went well with it.
    ///
    /// # Errors
    /// As [`Self::host_source`].
    fn host_sink(
        &self,
        path: &OsStr,
        o: &Operands,
        reporter: &dyn Reporter,
    ) -> Result<OpenResult<(Snk, bool)>, Self::Error>;

    /// Mode and owner of a file that is made.
    fn new_node(&self) -> NewNode;

    /// Processor time of each record that is copied from or to a device, or else from or to a file,
    /// beside what the device and the file system take.
    fn record_cost(&self, of_device: bool) -> Duration;
}

/// A source whose records cost the processor something.
struct CostedSource {
    source: Src,
    cost: Duration,
}

impl Source for CostedSource {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno> {
        cpu(self.cost);
        self.source.read(buf)
    }

    fn skip(&mut self, bytes: u64) -> Result<SkipResult, Errno> {
        self.source.skip(bytes)
    }

    fn forget(&mut self, all: bool) -> Result<(), Errno> {
        self.source.forget(all)
    }
}

/// Whether a copy is of the disk itself and of a file on it: the one would be under the other.
pub fn is_disk_and_file(o: &Operands) -> bool {
    let ends = || [&o.input, &o.output].into_iter().flatten().map(|path| named(path));
    ends().any(|end| end == DdPath::Device(OWN_DISK))
        && ends().any(|e| matches!(e, DdPath::File(_)))
}

/// What is read, with what each record of the copy costs the processor there.
pub fn charged<P: DdTarget>(at: &P, source: Src, o: &Operands) -> Src {
    let ends = [&o.input, &o.output].map(|path| path.as_deref().map(named));
    let is = |sort: fn(&DdPath<'_>) -> bool| ends.iter().flatten().any(sort);
    let (devices, files) =
        (is(|n| matches!(n, DdPath::Device(_))), is(|n| matches!(n, DdPath::File(_))));
    if !devices && !files {
        return source;
    }
    Box::new(CostedSource { source, cost: at.record_cost(devices) })
}

/// An input.
pub type Src = Box<dyn Source>;
/// An output.
pub type Snk = Box<dyn Sink>;
/// What could be opened, or why not.
pub type OpenResult<T> = Result<T, NotOpened>;

/// Why an input or output could not be opened, in dd's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// open(2) failed.
    #[error("failed to open {}: {errno}", always_quoted(path))]
    Open {
        /// What was to be opened.
        path: Vec<u8>,
        /// Why it was not.
        errno: Errno,
    },
    /// Somebody has it in use, and would not hear of the change.
    #[error("failed to open {}: {who}", always_quoted(path))]
    Busy {
        /// What was to be opened.
        path: Vec<u8>,
        /// Who uses it, in words.
        who: String,
    },
    /// The output cannot be cut where `seek=` says.
    #[error(
        "offset too large: cannot truncate to a length of seek={blocks} ({block_bytes}-byte) blocks"
    )]
    Offset {
        /// `seek=`.
        blocks: u64,
        /// `obs=`.
        block_bytes: usize,
    },
    /// A standard stream does not take the flags.
    #[error("setting flags for '{name}': {errno}")]
    Flags {
        /// The stream.
        name: &'static str,
        /// Why not.
        errno: Errno,
    },
}

impl NotOpened {
    /// The output that these operands describe cannot be cut there.
    pub fn offset(o: &Operands) -> NotOpened {
        NotOpened::Offset { blocks: o.seek_blocks, block_bytes: o.obs }
    }
}

fn failed_to_open(path: &[u8], errno: Errno) -> NotOpened {
    NotOpened::Open { path: path.to_vec(), errno }
}

/// Opens what is read.
///
/// # Errors
/// As the place has it.
pub fn source<P: DdTarget>(
    at: &P,
    what: DdPath<'_>,
    o: &Operands,
) -> Result<OpenResult<Src>, P::Error> {
    Ok(match what {
        DdPath::Host(path) => return at.host_source(path, o),
        DdPath::Device(name) => Ok(Box::new(DeviceEnd::new(at.device(name)?, o.iflags))),
        DdPath::Zero => Ok(Box::new(Zeros)),
        DdPath::Null => Ok(Box::new(Null)),
        DdPath::Random => Ok(Box::new(Random::default())),
        DdPath::File(name) => match FileSource::open(at.fs()?, name, o.iflags) {
            Ok(source) => Ok(Box::new(source)),
            Err(e) => Err(failed_to_open(name, e)),
        },
    })
}

/// Opens what is written, makes and cuts it as the operands say; and whether all went well with
/// it.
///
/// # Errors
/// As the place has it.
pub fn sink<P: DdTarget>(
    at: &P,
    what: DdPath<'_>,
    o: &Operands,
    reporter: &dyn Reporter,
) -> Result<OpenResult<(Snk, bool)>, P::Error> {
    Ok(match what {
        DdPath::Host(path) => return at.host_sink(path, o, reporter),
        DdPath::Device(name) => Ok((Box::new(DeviceEnd::new(at.device(name)?, o.oflags)), true)),
        // As the kernel's devices are: /dev/zero takes all, /dev/urandom too.
        DdPath::Zero | DdPath::Null | DdPath::Random => Ok((Box::new(Null), true)),
        DdPath::File(name) => file_sink(at, name, o, reporter)?,
    })
}

fn file_sink<P: DdTarget>(
    at: &P,
    name: &[u8],
    o: &Operands,
    reporter: &dyn Reporter,
) -> Result<OpenResult<(Snk, bool)>, P::Error> {
    if o.seek_offset().is_none() && o.truncates() {
        return Ok(Err(NotOpened::offset(o)));
    }
    let mut sink = match FileSink::open(at.fs()?, name, o, at.new_node()) {
        Ok(sink) => sink,
        Err(e) => return Ok(Err(failed_to_open(name, e))),
    };
    let cut = match o.seek_offset().filter(|_| o.seeks() && o.truncates()) {
        Some(size) => sink.truncate(size).map_err(|e| (size, e)),
        None => Ok(()),
    };
    if let Err((size, e)) = &cut {
        let name = always_quoted(name);
        reporter.says(&format!("failed to truncate to {size} bytes in output file {name}: {e}"));
    }
    Ok(Ok((Box::new(sink), cut.is_ok())))
}
