//! The format itself: what we make and check against e2fsprogs, and journals exchanged with the
//! kernel and e2fsck.

mod check;
mod journals;
mod mkfs;
mod sparse_image;
