//! How a file is opened.

use std::path::Path;
use std::sync::Arc;

use steadfast_vfs::path::place;
use steadfast_vfs::{Attr, FileType, FsError, OpenFlags};

use crate::error::{Error, Result, bytes};
use crate::file::{File, Handle};
use crate::fs::FileSystem;

/// How often a name is looked at anew that somebody else makes or removes at the same time.
const TRIES: u32 = 100;

/// How a file is opened, with the names of [`std::fs::OpenOptions`].
///
/// ```
/// use std::io::Write;
/// use steadfast::{Image, OpenOptions};
///
/// let fs = Image::in_memory(16 << 20).mount()?;
/// for line in ["one\n", "two\n"] {
///     let mut log = OpenOptions::new().append(true).create(true).open(&fs, "/log")?;
///     log.write_all(line.as_bytes())?;
/// }
/// assert_eq!(fs.read_to_string("/log")?, "one\ntwo\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
    sync: bool,
    data_sync: bool,
    direct: bool,
    mode: u32,
}

/// One method for each switch, with its example.
macro_rules! switches {
    ($($(#[doc = $text:literal])+ $name:ident, $example:literal;)*) => {
        impl OpenOptions {
            $($(#[doc = $text])+
            ///
            /// ```
            /// use steadfast::{Image, OpenOptions};
            ///
            /// let fs = Image::in_memory(16 << 20).mount()?;
            /// fs.write("/file", "12345")?;
            #[doc = $example]
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn $name(&mut self, $name: bool) -> &mut Self {
                self.$name = $name;
                self
            })*
        }
    };
}

switches! {
    /// Reading is allowed.
    read, "OpenOptions::new().read(true).open(&fs, \"/file\")?;";
    /// Writing is allowed.
    write, "OpenOptions::new().write(true).open(&fs, \"/file\")?;";
    /// Every write goes to the end (O_APPEND).
    append, "OpenOptions::new().append(true).open(&fs, \"/file\")?.write_at(b\"6\", 0)?;";
    /// What is there is cut to nothing.
    truncate, "OpenOptions::new().write(true).truncate(true).open(&fs, \"/file\")?;";
    /// A file that is not there is made.
    create, "OpenOptions::new().write(true).create(true).open(&fs, \"/new\")?;";
    /// The file must not be there, and is made.
    create_new,
        "assert!(OpenOptions::new().write(true).create_new(true).open(&fs, \"/file\").is_err());";
    /// A write returns when it is durable with all that belongs to it (O_SYNC).
    sync, "OpenOptions::new().write(true).sync(true).open(&fs, \"/file\")?;";
    /// A write returns when it is durable with what is needed to read it (O_DSYNC).
    data_sync, "OpenOptions::new().write(true).data_sync(true).open(&fs, \"/file\")?;";
    /// Past the cache: offsets and lengths are whole blocks (O_DIRECT).
    direct, "OpenOptions::new().read(true).direct(true).open(&fs, \"/file\")?;";
}

impl OpenOptions {
    /// Nothing is allowed yet.
    ///
    /// ```
    /// use steadfast::{Image, OpenOptions};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// assert!(OpenOptions::new().open(&fs, "/lost+found").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[allow(clippy::new_without_default, reason = "as in std: there is no default way to open")]
    pub fn new() -> OpenOptions {
        OpenOptions {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            sync: false,
            data_sync: false,
            direct: false,
            mode: 0o644,
        }
    }

    /// Permissions of a file that is made; 0o644 unless this says otherwise. There is no umask.
    ///
    /// ```
    /// use steadfast::{Image, OpenOptions};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// OpenOptions::new().write(true).create(true).mode(0o600).open(&fs, "/secret")?;
    /// assert_eq!(fs.metadata("/secret")?.mode() & 0o777, 0o600);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = mode;
        self
    }

    /// Opens a file.
    ///
    /// ```
    /// use steadfast::{Image, OpenOptions};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// let file = OpenOptions::new().read(true).write(true).create(true).open(&fs, "/file")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As open(2); Invalid: options that contradict each other.
    pub fn open(&self, fs: &FileSystem, path: impl AsRef<Path>) -> Result<File> {
        self.open_as("open", fs, path.as_ref())
    }

    pub(crate) fn open_as(
        &self,
        operation: &'static str,
        fs: &FileSystem,
        path: &Path,
    ) -> Result<File> {
        let opened = self.handle(fs, path).map_err(Error::at(operation, path))?;
        let (attr, handle) = opened;
        Ok(File::new(Arc::clone(fs.mounted()), attr.ino, handle, path.to_path_buf()))
    }

    fn writes(&self) -> bool {
        self.write || self.append
    }

    fn flags(&self) -> std::result::Result<OpenFlags, FsError> {
        let invalid = |what| Err(FsError::Invalid { what });
        if !self.read && !self.writes() {
            return invalid("neither read, write nor append");
        }
        if !self.writes() && (self.truncate || self.create || self.create_new) {
            return invalid("truncate, create and create_new need write or append");
        }
        if self.append && self.truncate && !self.create_new {
            return invalid("append and truncate contradict each other");
        }
        let mut flags = OpenFlags::empty();
        flags.set(OpenFlags::READ, self.read);
        flags.set(OpenFlags::WRITE, self.writes());
        flags.set(OpenFlags::APPEND, self.append);
        flags.set(OpenFlags::SYNC, self.sync);
        flags.set(OpenFlags::DSYNC, self.data_sync);
        flags.set(OpenFlags::DIRECT, self.direct);
        flags.set(OpenFlags::TRUNCATE, self.truncate);
        Ok(flags)
    }

    fn handle(&self, fs: &FileSystem, path: &Path) -> std::result::Result<(Attr, Handle), FsError> {
        let flags = self.flags()?;
        let node = fs.mounted().node(self.mode);
        for _ in 0..TRIES {
            let place = place(&**fs.vfs(), bytes(path), !self.create_new)?;
            let Some(attr) = place.attr else {
                if !self.create && !self.create_new {
                    return Err(FsError::NotFound);
                }
                if place.means_folder {
                    return Err(FsError::IsDirectory);
                }
                let flags = flags - OpenFlags::TRUNCATE;
                match fs.vfs().create(place.dir, &place.name, node, flags) {
                    Err(FsError::Exists) if !self.create_new => continue,
                    made => return made.map(|(attr, fh)| (attr, Handle::File(fh, flags))),
                }
            };
            if self.create_new {
                return Err(FsError::Exists);
            }
            match attr.kind {
                FileType::Regular => match fs.vfs().open(attr.ino, flags) {
                    Err(FsError::NotFound | FsError::Stale) if self.create => {}
                    opened => return opened.map(|fh| (attr, Handle::File(fh, flags))),
                },
                FileType::Directory if self.writes() => return Err(FsError::IsDirectory),
                FileType::Directory => return Ok((attr, Handle::Folder)),
                FileType::Symlink => return Err(FsError::Loop),
                // What is behind them is the host's kernel's.
                _ => return Err(FsError::NoAddress),
            }
        }
        Err(FsError::Busy { what: "the name comes and goes" })
    }
}
