//! Trees of files: walked through, copied into an image and out of it, removed.
//!
//! An image may be damaged, or made to do harm. So
//!
//! 1. walks are loops, not recursion; they know the folders above them and name a cycle;
//! 2. what is wrong with one object is reported by its path and need not end anything else
//!    ([`Options::on_failure`]);
//! 3. names come from the disk: none leads out of its folder, and on the host no symbolic link is
//!    followed below the target;
//! 4. what files claim to hold is bounded by the size of the image.
//!
//! ```
//! use steadfast::Image;
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::create_dir(folder.path().join("in"))?;
//! std::fs::write(folder.path().join("in/file"), "text")?;
//!
//! let fs = Image::in_memory(16 << 20).mount()?;
//! // As `cp -a`: with links, holes, owners, modes, times and attributes.
//! fs.copy_in(folder.path().join("in"), "/")?;
//! for entry in fs.walk("/in")? {
//!     assert_eq!(entry?.path(), std::path::Path::new("/in/file"));
//! }
//! fs.copy_out("/in", folder.path().join("out"))?;
//! assert_eq!(std::fs::read(folder.path().join("out/file"))?, b"text");
//! # Ok::<(), std::io::Error>(())
//! ```

mod archive;
mod bound;
mod contents;
mod copy;
mod descent;
mod ends;
mod failures;
mod folders;
mod listing;
mod names;
mod options;
mod owners;
mod pieces;
mod remove;
mod walk;

pub use archive::Whiteouts;
pub use failures::{Note, Report};
pub use folders::{Folder, FolderEntry, Folders};
pub use options::Options;
pub use owners::OwnerMap;
pub use walk::{Entry, Walk};

/// Which kind of file system is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// An image: its folders may be anything.
    Image,
    /// The host: the kernel sees to it that they form a tree. A folder may be bound to a second
    /// place.
    Host,
}
