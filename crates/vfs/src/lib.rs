//! The file-system interface, and the host's own file systems behind it.
