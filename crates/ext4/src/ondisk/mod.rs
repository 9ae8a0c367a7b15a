//! On-disk structures, one a file.
