//! Extended attributes: entries in an inode or a block of attributes, names, access control lists.

pub mod acl;
pub mod body;
pub mod entry;
pub mod name;
