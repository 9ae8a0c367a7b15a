//! What a source and a sink can do, and those that are no file.

use super::errno::Errno;

/// How far a source could be moved on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipResult {
    /// By so many bytes: fewer than asked for where the end is nearer.
    By(u64),
    /// It can only be read (a pipe).
    MustRead,
}

/// Where data comes from. It knows its position.
pub trait Source: Send {
    /// Reads up to `buf.len()` bytes; 0 at the end.
    ///
    /// # Errors
    /// As read(2).
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno>;

    /// Moves on without reading; a device that is none moves anywhere.
    ///
    /// # Errors
    /// As lseek(2).
    fn skip(&mut self, bytes: u64) -> Result<SkipResult, Errno> {
        Ok(SkipResult::By(bytes))
    }

    /// Lets the cache forget what was read up to here (`iflag=nocache`); with `all`, the file.
    fn forget(&mut self, _all: bool) -> Result<(), Errno> {
        Ok(())
    }
}

/// Where data goes. It knows its position.
pub trait Sink: Send {
    /// Writes; may take less than all.
    ///
    /// # Errors
    /// As write(2).
    fn write(&mut self, data: &[u8]) -> Result<usize, Errno>;

    /// Moves on without writing.
    ///
    /// # Errors
    /// As lseek(2): ESPIPE where it cannot.
    fn seek(&mut self, bytes: u64) -> Result<(), Errno>;

    /// After a seek at the end: a regular file that is shorter than the position is made longer.
    ///
    /// # Errors
    /// As ftruncate(2); `Ok(None)` where there was nothing to do, else the new length.
    fn extend(&mut self) -> Result<(), (u64, Errno)> {
        Ok(())
    }

    /// Goes on without O_DIRECT, for a last part that is not whole.
    ///
    /// # Errors
    /// As fcntl(2).
    fn stop_direct(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// As fsync(2) or fdatasync(2).
    fn sync(&mut self, data_only: bool) -> Result<(), Errno>;

    /// Lets the cache forget what was written up to here (`oflag=nocache`); with `all`, the file.
    fn forget(&mut self, _all: bool) -> Result<(), Errno> {
        Ok(())
    }
}

/// /dev/zero.
#[derive(Debug, Default)]
pub struct Zeros;

impl Source for Zeros {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno> {
        buf.fill(0);
        Ok(buf.len())
    }
}

/// /dev/urandom: the generator of [`steadfast_block::rng`], which a simulation's seed seeds.
#[derive(Debug)]
pub struct Random(steadfast_block::rng::Rng);

impl Default for Random {
    fn default() -> Self {
        Random(steadfast_block::rng::Rng::new(steadfast_runtime::random_u64()))
    }
}

impl Source for Random {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno> {
        for chunk in buf.chunks_mut(8) {
            let word = self.0.bits().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(buf.len())
    }
}

/// /dev/null.
#[derive(Debug, Default)]
pub struct Null;

impl Source for Null {
    fn read(&mut self, _buf: &mut [u8]) -> Result<usize, Errno> {
        Ok(0)
    }
}

impl Sink for Null {
    fn write(&mut self, data: &[u8]) -> Result<usize, Errno> {
        Ok(data.len())
    }

    fn seek(&mut self, _bytes: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn sync(&mut self, _data_only: bool) -> Result<(), Errno> {
        Err(Errno::INVAL)
    }
}
