//! Images and devices: made, opened, mounted in process.

mod make;
mod source;

use std::path::PathBuf;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::{AccessTimes, DataMode, MountOptions};
use steadfast_ext4_mkfs::Options;
use steadfast_setup::Blocks;
use steadfast_vfs::{FileSystem as Vfs, TransactPolicy};

pub use make::occupant;
pub use source::{Journal, Source};

use crate::error::{Error, Result};
use crate::fs::{FileSystem, FileSystemCore};
use crate::journal::find_journal;

/// Memory for what is read of an image and written to it, in bytes.
const CACHE: u64 = 64 << 20;

/// Which of the family.
///
/// ```
/// use steadfast::{ExtVersion, Image};
///
/// let fs = Image::in_memory(16 << 20).kind(ExtVersion::Ext2).mount()?;
/// fs.write("/file", "no journal, no extents")?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExtVersion {
    /// Without a journal.
    Ext2,
    /// With a journal; block maps.
    Ext3,
    /// With a journal and extents, checksums, directories of any size.
    #[default]
    Ext4,
}

/// An image file, a device or some memory, and how it is to be mounted: a builder, which
/// [`mount`](Image::mount) ends.
///
/// ```
/// use steadfast::{DataMode, Image};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("disk.img");
/// let fs = Image::create(&path).size(32 << 20).label("data").mount()?;
/// fs.write("/file", "contents")?;
/// fs.unmount()?;
///
/// let fs = Image::open(&path).data(DataMode::Journal).mount()?;
/// assert_eq!(fs.read("/file")?, b"contents");
/// fs.unmount()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing happens before `mount`"]
pub struct Image {
    source: Source,
    /// What is made before the mount, if anything is.
    make: Option<make::ImageSpec>,
    journal: Option<Journal>,
    accept_volatile: bool,
    owner: (u32, u32),
    /// What was said of mounting, in this order, over what holds without.
    changes: Vec<Change>,
}

/// Of the options of a mount.
type Change = Arc<dyn Fn(&mut MountOptions) + Send + Sync>;

impl Image {
    fn new(source: Source, make: Option<make::ImageSpec>) -> Image {
        let owner = match rustix::process::geteuid() {
            user if user.is_root() => (0, 0),
            user => (user.as_raw(), rustix::process::getegid().as_raw()),
        };
        Image { source, make, journal: None, accept_volatile: false, owner, changes: Vec::new() }
    }

    /// What holds of mounting where nothing is said.
    fn defaults() -> MountOptions {
        MountOptions {
            // Whoever works on an image may use all of it.
            use_reserved: true,
            cache_bytes: Some(CACHE),
            ..MountOptions::default()
        }
    }

    /// A new file system, in an image file that is made with the [`size`](Self::size) that must
    /// then be given, or on a block device or an image file that is there and holds nothing.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("disk.img");
    /// use steadfast::Image;
    ///
    /// Image::create(&path).size(16 << 20).mount()?.unmount()?;
    /// // What is there is not overwritten.
    /// let error = Image::create(&path).mount().unwrap_err();
    /// assert!(error.to_string().contains("holds a file system"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn create(source: impl Into<Source>) -> Image {
        Image::new(source.into(), Some(make::ImageSpec::default()))
    }

    /// A file system that is there. An image file or a block device that is in use is refused; a
    /// device of this program is not known to be, and must not be mounted twice.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("disk.img");
    /// use steadfast::Image;
    ///
    /// assert!(Image::open(&path).mount().is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn open(source: impl Into<Source>) -> Image {
        Image::new(source.into(), None)
    }

    /// A new file system in memory, gone when its last user is.
    ///
    /// ```
    /// use steadfast::Image;
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "fleeting")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn in_memory(size: u64) -> Image {
        let memory: Arc<dyn BlockDevice> = Arc::new(Ram::new("memory", size));
        Image::create(memory).zeroed(true)
    }

    /// What is to be made; of an image that is to be opened `mount` refuses it.
    fn wanted(&mut self) -> &mut make::ImageSpec {
        let of_open = || make::ImageSpec { of_open: true, ..make::ImageSpec::default() };
        self.make.get_or_insert_with(of_open)
    }

    fn change(&mut self, change: impl Fn(&mut MountOptions) + Send + Sync + 'static) {
        self.changes.push(Arc::new(change));
    }

    /// Bytes of the image file that is made.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("disk.img");
    /// let fs = steadfast::Image::create(&path).size(64 << 20).mount()?;
    /// assert_eq!(path.metadata()?.len(), 64 << 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn size(mut self, bytes: u64) -> Image {
        self.wanted().size = Some(bytes);
        self
    }

    /// Which of the family is made; ext4 unless this says otherwise.
    ///
    /// ```
    /// use steadfast::{ExtVersion, Image};
    /// let fs = Image::in_memory(16 << 20).kind(ExtVersion::Ext3).mount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn kind(mut self, kind: ExtVersion) -> Image {
        self.wanted().kind = kind;
        self
    }

    /// Bytes a block, 1024 to 65536; what mke2fs would choose unless this says otherwise.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).block_size(4096).mount()?;
    /// assert_eq!(fs.statfs()?.block_size, 4096);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn block_size(mut self, bytes: u32) -> Image {
        self.wanted().block_size = Some(bytes);
        self
    }

    /// The label of the file system that is made, at most 16 bytes.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).label("scratch").mount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Image {
        self.wanted().label = label.into();
        self
    }

    /// Whether a device that is given is known to hold zeros only, as a new model does: then its
    /// tables need not be overwritten.
    ///
    /// ```
    /// let disk = std::sync::Arc::new(steadfast::devices::source::Ram::new("disk", 16 << 20));
    /// let fs = steadfast::Image::create(disk).zeroed(true).mount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn zeroed(mut self, zeros: bool) -> Image {
        self.wanted().zeroed = zeros;
        self
    }

    /// Changes anything else of what is made, after what the other methods say.
    ///
    /// ```
    /// let image = steadfast::Image::in_memory(16 << 20).mkfs_options(|o| o.inodes = Some(100));
    /// assert!(image.mount()?.statfs()?.inodes < 200);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn mkfs_options(mut self, change: impl Fn(&mut Options) + Send + Sync + 'static) -> Image {
        self.wanted().change = Some(Arc::new(change));
        self
    }

    /// Bytes of a journal that is made; what mke2fs would choose unless this says otherwise.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let card = folder.path().join("card.img");
    /// let journal = steadfast::Journal::external(&card);
    /// let image = steadfast::Image::in_memory(32 << 20).journal(journal);
    /// image.journal_size(8 << 20).mount()?;
    /// assert_eq!(card.metadata()?.len(), 8 << 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn journal_size(mut self, bytes: u64) -> Image {
        self.wanted().journal_size = Some(bytes);
        self
    }

    /// What the journal promises about the data of files; [`DataMode::Ordered`] unless this says
    /// otherwise.
    ///
    /// ```
    /// use steadfast::{DataMode, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).data(DataMode::Transact).mount()?;
    /// fs.transaction_point()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn data(mut self, mode: DataMode) -> Image {
        self.change(move |o| o.data = mode);
        self
    }

    /// When transaction points are made by themselves, with [`DataMode::Transact`].
    ///
    /// ```
    /// use steadfast::{DataMode, Image, TransactPolicy};
    ///
    /// let image = Image::in_memory(16 << 20).data(DataMode::Transact);
    /// let fs = image.transaction_points(TransactPolicy::MANUAL).mount()?;
    /// fs.write("/file", "")?;
    /// fs.rollback()?;
    /// assert!(!fs.exists("/file")?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn transaction_points(mut self, policy: TransactPolicy) -> Image {
        self.change(move |o| o.transact = policy);
        self
    }

    /// Whether nothing at all is written. A journal that needs recovery is replayed in memory.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("disk.img");
    /// use steadfast::Image;
    ///
    /// Image::create(&path).size(16 << 20).mount()?.unmount()?;
    /// let fs = Image::open(&path).read_only(true).mount()?;
    /// assert_eq!(fs.create("/file").unwrap_err().errno(), 30); // EROFS
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_only(mut self, read_only: bool) -> Image {
        self.change(move |o| o.read_only = read_only);
        self
    }

    /// Bytes for everything that is kept in memory of the disk's contents; 64 MiB unless this says
    /// otherwise.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).cache(8 << 20).mount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn cache(mut self, bytes: u64) -> Image {
        self.change(move |o| o.cache_bytes = Some(bytes));
        self
    }

    /// Whether reading changes the times of access, as `relatime` does unless this says otherwise.
    ///
    /// ```
    /// use steadfast::{AccessTimes, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).access_times(AccessTimes::Never).mount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn access_times(mut self, times: AccessTimes) -> Image {
        self.change(move |o| o.access_times = times);
        self
    }

    /// User and group of what is made, the root folder too; the caller's unless this says
    /// otherwise.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).owner(1000, 100).mount()?;
    /// fs.write("/file", "")?;
    /// assert_eq!(fs.metadata("/file")?.uid(), 1000);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn owner(mut self, user: u32, group: u32) -> Image {
        self.owner = (user, group);
        self
    }

    /// Changes any other mount option. What nobody changes is as the superblock of a file system
    /// that is there asks for (`tune2fs -o`, `-E mount_opts=`), else as a mount has it.
    ///
    /// ```
    /// let image = steadfast::Image::in_memory(16 << 20);
    /// let fs = image.mount_options(|o| o.auto_da_alloc = false).mount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn mount_options(
        mut self,
        change: impl Fn(&mut MountOptions) + Send + Sync + 'static,
    ) -> Image {
        self.change(change);
        self
    }

    /// Where the journal is. A new file system has an internal one unless this says otherwise; of
    /// one that is there only an external journal need be said, and a block device that holds it is
    /// found without.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let (disk, card) = (folder.path().join("disk.img"), folder.path().join("card.img"));
    /// use steadfast::{Image, Journal};
    ///
    /// let image = Image::create(&disk).size(32 << 20).journal(Journal::external(&card));
    /// image.mount()?.unmount()?;
    /// Image::open(&disk).journal(Journal::external(&card)).mount()?.unmount()?;
    /// // It does not mount without its journal.
    /// assert!(Image::open(&disk).mount().is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn journal(mut self, journal: Journal) -> Image {
        self.journal = Some(journal);
        self
    }

    /// Takes a journal device that would lose the journal with the power (memory, a file on tmpfs)
    /// for a disk that would not. For a disk that is as volatile itself nobody has to say so.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use steadfast::{Image, Journal, devices::source::Ram};
    ///
    /// let disk = || Arc::new(Ram::new("disk", 32 << 20).persistent());
    /// let journal = || Journal::external(Arc::new(Ram::new("card", 8 << 20)));
    /// assert!(Image::create(disk()).journal(journal()).mount().is_err());
    /// Image::create(disk()).journal(journal()).accept_volatile(true).mount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn accept_volatile(mut self, accept: bool) -> Image {
        self.accept_volatile = accept;
        self
    }

    /// Makes the file system if that was asked for, recovers it if it was not unmounted, and
    /// mounts it in this process.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// assert!(fs.exists("/lost+found")?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Opening: there is no such image, or it is in use; a block device is mounted already.
    /// Making: what is there already; sizes that cannot be. Mounting: features that are not
    /// implemented, a journal that is missing or the wrong one, damage. What was made by a call
    /// that fails is removed again.
    pub fn mount(self) -> Result<FileSystem> {
        let Image { source, make, journal, accept_volatile, owner, changes } = self;
        let MountOptions { read_only, simulated_epoch, .. } = over(Image::defaults(), &changes);
        let (device, journal) = match make {
            None => {
                let device = source.open(read_only)?;
                let journal = match (journal, &source) {
                    (Some(Journal::External(at)), Source::Path(image)) => Some(beside(image, at)?),
                    (Some(Journal::External(at)), Source::Device(_)) => Some(at),
                    (Some(Journal::Internal | Journal::None), _) | (None, Source::Device(_)) => {
                        None
                    }
                    (None, Source::Path(image)) => find_journal(image, &[])?.map(Source::Path),
                };
                (device, journal.map(|at| at.opened(read_only)).transpose()?)
            }
            Some(wanted) => {
                if read_only {
                    let what = "a new file system cannot be mounted read-only: mount it, \
                                unmount it, and open it again";
                    return Err(Error::Refused { what: what.into() });
                }
                let making = make::Making { wanted, owner, accept_volatile };
                making.make(&source, journal, simulated_epoch)?
            }
        };
        let (info, blocks) = (device.info(), Blocks::of(device, journal));
        let mut options = over(blocks.default_options(Image::defaults()).0, &changes);
        options.journal.accept_volatile |= accept_volatile || info.unfit_to_persist().is_some();
        let name = info.name;
        let failed = |source| Error::FileSystem { doing: "mounting", device: name.clone(), source };
        let ext4 = blocks.mount(options).map_err(failed)?;
        let fs = Arc::clone(&ext4) as Arc<dyn Vfs>;
        Ok(FileSystem::of(FileSystemCore::new(fs, Some(ext4), name, owner)))
    }
}

/// What was said of mounting, over these.
fn over(mut options: MountOptions, changes: &[Change]) -> MountOptions {
    changes.iter().for_each(|change| change(&mut options));
    options
}

/// The journal of an image where one was named for it, which may be a folder to look in.
fn beside(image: &std::path::Path, at: Source) -> Result<Source> {
    match at {
        Source::Path(path) if path.is_dir() => {
            let found: Option<PathBuf> = find_journal(image, std::slice::from_ref(&path))?;
            Ok(Source::Path(found.unwrap_or(path)))
        }
        at => Ok(at),
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("source", &self.source)
            .field("new", &self.make.is_some())
            .field("journal", &self.journal)
            .field("options", &over(Image::defaults(), &self.changes))
            .finish_non_exhaustive()
    }
}
