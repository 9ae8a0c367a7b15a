//! Transaction points, of a file system that is mounted with data=transact.

use std::path::Path;

use steadfast_vfs::{FsError, TransactPolicy};

use super::FileSystem;
use crate::error::{Error, Result};

impl FileSystem {
    fn of_points(&self, operation: &'static str) -> impl FnOnce(FsError) -> Error {
        Error::at(operation, Path::new(self.name()))
    }

    /// Makes a transaction point: what is there now, names and contents, is what any later power
    /// cut leaves at the least.
    ///
    /// ```
    /// use steadfast::{DataMode, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).data(DataMode::Transact).mount()?;
    /// fs.write("/a", "both")?;
    /// fs.write("/b", "or none")?;
    /// fs.transaction_point()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not mounted with [`DataMode::Transact`](crate::DataMode::Transact); the device failed.
    pub fn transaction_point(&self) -> Result<()> {
        self.vfs().transact().map_err(self.of_points("transaction_point"))
    }

    /// Goes back to the last transaction point.
    ///
    /// ```
    /// use steadfast::{DataMode, Image, TransactPolicy};
    ///
    /// let image = Image::in_memory(16 << 20).data(DataMode::Transact);
    /// let fs = image.transaction_points(TransactPolicy::MANUAL).mount()?;
    /// fs.write("/file", "kept")?;
    /// fs.transaction_point()?;
    /// fs.write("/file", "taken back")?;
    /// fs.rollback()?;
    /// assert_eq!(fs.read_to_string("/file")?, "kept");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Busy: files are open. As for [`transaction_point`](Self::transaction_point).
    pub fn rollback(&self) -> Result<()> {
        self.vfs().rollback().map_err(self.of_points("rollback"))
    }

    /// Changes when transaction points are made by themselves.
    ///
    /// ```
    /// use steadfast::{DataMode, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).data(DataMode::Transact).mount()?;
    /// fs.set_transaction_points("fsync,timed=5s".parse().unwrap())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`transaction_point`](Self::transaction_point).
    pub fn set_transaction_points(&self, policy: TransactPolicy) -> Result<()> {
        let set = self.vfs().set_transact_policy(policy);
        set.map_err(self.of_points("set_transaction_points"))
    }

    /// Does `work` as a whole: with a transaction point at its end, or, if it fails, taken back to
    /// what was there before. A power cut in between takes it back too. What others do meanwhile is
    /// part of it; there is one at a time.
    ///
    /// ```
    /// use steadfast::{DataMode, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).data(DataMode::Transact).mount()?;
    /// fs.write("/account", "100")?;
    /// let done = fs.transaction(|fs| {
    ///     fs.write("/account", "0")?;
    ///     fs.read("/other-account") // There is none.
    /// });
    /// assert!(done.is_err());
    /// assert_eq!(fs.read_to_string("/account")?, "100");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work`, when all is as it was; that it cannot be taken back yet, because files are
    /// open: it is when the last of them is closed, and until then nothing can be changed, and
    /// `sync` and `sync_all` fail; as for [`transaction_point`](Self::transaction_point).
    pub fn transaction<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&FileSystem) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.vfs().begin_group().map_err(self.of_points("transaction"))?;
        let group = Group(self);
        let done = work(self);
        std::mem::forget(group);
        let ended = self.vfs().end_group(done.is_ok());
        ended.map_err(self.of_points("transaction"))?;
        done
    }
}

/// A group of operations in whose middle a panic takes them back.
struct Group<'f>(&'f FileSystem);

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if !steadfast_runtime::is_simulated() {
            // OK to ignore: the panic is what counts.
            let _ = self.0.vfs().end_group(false);
        }
    }
}
