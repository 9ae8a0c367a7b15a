//! The file system as the program sees it, and as the judge finds it.

use std::ops::Deref;
use std::sync::Arc;

use steadfast_crash::program::inside::AckLog;
use steadfast_vfs::FileSystem as Vfs;

use crate::fs::FileSystem;

/// The file system that a program runs on: a [`FileSystem`], and somebody to acknowledge to.
///
/// ```
/// use steadfast::crash::{PowerCut, ProgramFs};
///
/// fn program(fs: &ProgramFs) -> steadfast::Result<()> {
///     let file = fs.create("/log")?;
///     for n in 0..3 {
///         file.write_all_at(b"x", n)?;
///         file.sync_all()?;
///         fs.acknowledge(format!("{n}"));
///     }
///     Ok(())
/// }
/// let recorded = PowerCut::new().cuts(10).run(program);
/// ```
pub struct ProgramFs {
    fs: FileSystem,
    said: AckLog,
}

impl ProgramFs {
    pub(super) fn new(fs: Arc<dyn Vfs>, said: AckLog) -> ProgramFs {
        ProgramFs { fs: FileSystem::over(fs, "disk"), said }
    }

    /// Acknowledges that something is done, as a server answers its client. A judge is given the
    /// text if the power was cut later.
    ///
    /// ```
    /// use steadfast::crash::{NextBoot, PowerCut};
    ///
    /// let program = |fs: &steadfast::crash::ProgramFs| {
    ///     fs.write("/file", "text")?;
    ///     fs.sync()?;
    ///     fs.acknowledge("stored");
    ///     steadfast::Result::Ok(())
    /// };
    /// let judge = |left: &NextBoot| match left.acknowledged("stored") {
    ///     true => left.read("/file").map(drop),
    ///     false => Ok(()),
    /// };
    /// PowerCut::new().cuts(20).run(program).judge(judge).unwrap();
    /// ```
    ///
    /// # Panics
    /// The caller is a thread of `std::thread`, outside of the simulation.
    pub fn acknowledge(&self, text: impl AsRef<str>) {
        // An acknowledgement has its place between the calls of the simulation.
        self.fs.vfs();
        self.said.say(text.as_ref().as_bytes());
    }
}

impl Deref for ProgramFs {
    type Target = FileSystem;

    fn deref(&self) -> &FileSystem {
        &self.fs
    }
}

/// What the next boot finds: a [`FileSystem`], which may be changed, as a program's own recovery
/// does, and what had been acknowledged before the cut.
///
/// ```
/// use steadfast::crash::{NextBoot, PowerCut};
///
/// let judge = |left: &NextBoot| match left.exists("/folder") {
///     Ok(true) => left.write("/folder/file", "it is usable"),
///     found => found.map(drop),
/// };
/// PowerCut::new().cuts(20).run(|fs| fs.create_dir("/folder")).judge(judge).unwrap();
/// ```
pub struct NextBoot {
    fs: FileSystem,
    lines: Vec<String>,
}

impl NextBoot {
    pub(super) fn new(fs: Arc<dyn Vfs>, lines: Vec<Vec<u8>>) -> NextBoot {
        let fs = FileSystem::over(fs, "disk");
        let lines = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        NextBoot { fs, lines }
    }

    /// Whether this had been acknowledged before the cut.
    ///
    /// ```
    /// use steadfast::crash::{NextBoot, PowerCut};
    ///
    /// let judge = |left: &NextBoot| match left.acknowledged("never said") {
    ///     true => Err("who said that?"),
    ///     false => Ok(()),
    /// };
    /// PowerCut::new().cuts(5).run(|fs| fs.write("/file", "text")).judge(judge).unwrap();
    /// ```
    pub fn acknowledged(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line == text)
    }

    /// Everything that had been acknowledged before the cut, in order.
    ///
    /// ```
    /// use steadfast::crash::{NextBoot, PowerCut};
    ///
    /// let judge = |left: &NextBoot| match left.acknowledgements().len() {
    ///     0 => Ok(()),
    ///     n => Err(format!("{n} acknowledgements of nothing")),
    /// };
    /// PowerCut::new().cuts(5).run(|fs| fs.write("/file", "text")).judge(judge).unwrap();
    /// ```
    pub fn acknowledgements(&self) -> &[String] {
        &self.lines
    }
}

impl Deref for NextBoot {
    type Target = FileSystem;

    fn deref(&self) -> &FileSystem {
        &self.fs
    }
}
