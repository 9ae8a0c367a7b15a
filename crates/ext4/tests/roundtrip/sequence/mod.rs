//! Random sequences of operations, run at once against a file system and against a model of it.
//!
//! The file system is anything behind [`FileSystem`](steadfast_vfs::FileSystem): ours on an image,
//! or the kernel's through `HostFs`. Both must answer as the model does, error numbers included.

mod ops;
mod run;
mod tree;

pub use ops::{Choice, sequence};
pub use run::run;
pub use tree::{assert_holds, assert_same, assert_same_attrs, attrs_of, tree_of};
