//! Block and inode allocation.
