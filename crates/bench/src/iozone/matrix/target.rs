//! What only the place of the files can do.

use std::io;

/// What the place of the files did not do.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The file cannot be opened.
    #[error("{path}: {source}")]
    Open {
        /// Its path.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A system call has failed.
    #[error("{call}: {source}")]
    Call {
        /// Its name.
        call: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The file is shorter than what is to be mapped.
    #[error("the file has {size} of {len} bytes; write it with -i 0 first")]
    Short {
        /// Its size in bytes.
        size: u64,
        /// What is to be mapped.
        len: u64,
    },
    /// It is not possible here.
    #[error("{0}")]
    NotHere(&'static str),
    /// The system's error, of a call that the caller names.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The folder's machine. If nothing else is said, a file system in this process: nobody else locks
/// its files, and no page of it can be mapped.
pub trait MatrixTarget: Send + Sync {
    /// Lets the caches forget a file; says how.
    ///
    /// # Errors
    /// It cannot be done, and why.
    fn drop_caches(&self, _file: &str) -> Result<String, TargetError> {
        Err(TargetError::NotHere("this file system's caches cannot be dropped here"))
    }

    /// Locks the whole file until the result is dropped.
    ///
    /// # Errors
    /// As fcntl(2).
    fn lock(&self, _file: &str, _writes: bool) -> Result<Box<dyn Send>, TargetError> {
        Ok(Box::new(()))
    }

    /// Maps a file, which gets this length in bytes.
    ///
    /// # Errors
    /// As mmap(2).
    fn map(&self, _file: &str, _len: u64, _writes: bool) -> Result<Box<dyn Mapping>, TargetError> {
        let what = "a file system in this process has no mappings: mount it, and give -f there";
        Err(TargetError::NotHere(what))
    }
}

/// A mapped file.
pub trait Mapping: Send {
    /// Copies from the file.
    fn read(&mut self, offset: u64, buf: &mut [u8]);

    /// Copies to the file.
    fn write(&mut self, offset: u64, data: &[u8]);

    /// msync(2): MS_SYNC if `wait`, else MS_ASYNC.
    ///
    /// # Errors
    /// As msync(2).
    fn sync(&mut self, offset: u64, len: u64, wait: bool) -> Result<(), TargetError>;
}

/// A file system in this process.
pub struct InProcessTarget;

impl MatrixTarget for InProcessTarget {}
