//! Where a file system or a journal is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_setup::path::{self, PathOptions};
use steadfast_volume::member::read_label;

use crate::error::{Error, Result};
use crate::journal::device_number;

/// Where something is kept: the path of an image file or a block device, or a device of this
/// program: memory, a model, a volume, one of your own.
///
/// ```
/// use std::sync::Arc;
/// use steadfast::Source;
/// use steadfast::devices::source::Ram;
///
/// let by_path: Source = "disk.img".into();
/// let in_memory: Source = Arc::new(Ram::new("memory", 1 << 20)).into();
/// assert_eq!(format!("{by_path:?} {in_memory:?}"), "disk.img memory");
/// ```
#[derive(Clone)]
pub enum Source {
    /// An image file, a block device of this machine, or a range of memory (`pmem:PATH`).
    Path(PathBuf),
    /// A device of this program.
    Device(Arc<dyn BlockDevice>),
}

/// A device with its number as the kernel encodes it, 0 if it is no block device.
pub(super) type NumberedDevice = (Arc<dyn BlockDevice>, u32);

impl Source {
    /// Opens it. A member of a volume is refused: its other members would not know.
    pub(super) fn open(&self, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
        match self {
            Source::Device(device) => Ok(Arc::clone(device)),
            Source::Path(path) => {
                let options = PathOptions { read_only, ..PathOptions::default() };
                let device = path::open_file(path, options)?.device;
                refuse_member(&device)?;
                Ok(device)
            }
        }
    }

    /// Opens it as a journal.
    pub(super) fn opened(&self, read_only: bool) -> Result<NumberedDevice> {
        let number = match self {
            Source::Path(path) => device_number(path),
            Source::Device(_) => 0,
        };
        Ok((self.open(read_only)?, number))
    }
}

fn refuse_member(device: &Arc<dyn BlockDevice>) -> Result<()> {
    match read_label(device) {
        Ok(Some(found)) if found.overwritten.is_none() => {
            let (name, label) = (found.name(), &found.label);
            Err(Error::Refused {
                what: format!(
                    "{name}: is member {} of the {} '{}' ({}): assemble it with \
                     steadfast::volume, and give the volume as the device",
                    label.slot,
                    label.kind.name(),
                    label.name,
                    label.volume
                ),
            })
        }
        // Whoever reads what is there reports everything else.
        _ => Ok(()),
    }
}

/// What names a path.
macro_rules! paths {
    ($($of:ty),+) => {
        $(impl From<$of> for Source {
            fn from(path: $of) -> Source {
                Source::Path(path.into())
            }
        })+
    };
}

paths!(&Path, &PathBuf, PathBuf, &str, String);

impl From<Arc<dyn BlockDevice>> for Source {
    fn from(device: Arc<dyn BlockDevice>) -> Source {
        Source::Device(device)
    }
}

impl<D: BlockDevice + 'static> From<Arc<D>> for Source {
    fn from(device: Arc<D>) -> Source {
        Source::Device(device)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Path(path) => write!(f, "{}", path.display()),
            Source::Device(device) => f.write_str(&device.info().name),
        }
    }
}

/// Where the journal is.
///
/// ```
/// use steadfast::{Image, Journal};
///
/// let fs = Image::in_memory(16 << 20).journal(Journal::None).mount()?;
/// fs.write("/file", "as durable as with one, but a power cut needs e2fsck")?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub enum Journal {
    /// In the file system.
    Internal,
    /// In a file or on a device of its own: fast memory, for example. For a new file system an
    /// image file that is not there is made, and what holds nothing becomes a journal. For one that
    /// is there a folder of journals will do: the right one is known by its UUID.
    External(Source),
    /// There is none.
    None,
}

impl Journal {
    /// A journal on a device of its own.
    ///
    /// ```
    /// use steadfast::Journal;
    ///
    /// let journal = Journal::external("/dev/pmem0");
    /// assert_eq!(format!("{journal:?}"), "External(/dev/pmem0)");
    /// ```
    pub fn external(source: impl Into<Source>) -> Journal {
        Journal::External(source.into())
    }
}
