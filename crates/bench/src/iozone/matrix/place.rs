//! What only the place of the files can do.

/// The folder's machine.
pub trait Place: Send + Sync {
    /// Lets the caches forget a file; says how.
    ///
    /// # Errors
    /// It cannot be done, and why.
    fn drop_caches(&self, file: &str) -> Result<String, String>;

    /// Locks the whole file until the result is dropped.
    ///
    /// # Errors
    /// As fcntl(2).
    fn lock(&self, file: &str, writes: bool) -> Result<Box<dyn Send>, String>;

    /// Maps a file, which gets this length in bytes.
    ///
    /// # Errors
    /// As mmap(2).
    fn map(&self, file: &str, len: u64, writes: bool) -> Result<Box<dyn Mapping>, String>;
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
    fn sync(&mut self, offset: u64, len: u64, wait: bool) -> Result<(), String>;
}

/// A file system in this process: nobody else locks its files, and no page of it can be mapped.
pub struct NoPlace;

impl Place for NoPlace {
    fn drop_caches(&self, _file: &str) -> Result<String, String> {
        Err("this file system's caches cannot be dropped here".into())
    }

    fn lock(&self, _file: &str, _writes: bool) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(()))
    }

    fn map(&self, _file: &str, _len: u64, _writes: bool) -> Result<Box<dyn Mapping>, String> {
        Err("a file system in this process has no mappings: mount it, and give -f there".into())
    }
}
