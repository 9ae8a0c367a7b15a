//! The traps of external journals, walked into twice: with e2fsprogs and the kernel, and with
//! steadfast.
//!
//! Each trap is a state of two or three image files, made once, by mke2fs and the kernel; each
//! side gets a copy of it and goes on as its user would, up to a file system that is in use again
//! or to the end of what its tools offer. Judged is what became of files that had been fsynced,
//! read back through a mount, and what `e2fsck -fn` finds. As root, with loop devices and FUSE.

mod cases;
mod report;
mod stage;

use std::path::Path;

pub use report::{Row, Step, TrapRun, TrapVerdict, documented};

use crate::Result;
use stage::Stage;

/// One trap.
#[derive(Debug, Clone, Copy)]
pub struct Trap {
    /// What happens, in a few words.
    pub name: &'static str,
    /// Makes the state.
    prepare: fn(&Stage) -> Result<()>,
    /// What a user of e2fsprogs and the kernel does with it.
    stock: fn(&Stage) -> Result<TrapRun>,
    /// What a user of steadfast does with it.
    ours: fn(&Stage) -> Result<TrapRun>,
}

/// All of them, in the order of docs/external-journals.md.
pub const TRAPS: [Trap; 7] = cases::TRAPS;

/// Whom to let walk into a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// Both.
    Both,
    /// Steadfast alone.
    Ours,
}

impl Trap {
    /// Walks into it; `steadfast` is the program.
    ///
    /// # Errors
    /// If the state cannot be made, or a program cannot be run: not what the sides do with it.
    pub fn run(&self, steadfast: &Path, sides: Sides) -> Result<Row> {
        let stage = Stage::new(steadfast)?;
        (self.prepare)(&stage)?;
        let stock = match sides {
            Sides::Both => Some((self.stock)(&stage.copy("stock")?)?),
            Sides::Ours => None,
        };
        let ours = (self.ours)(&stage.copy("ours")?)?;
        Ok(Row { trap: self.name, stock, ours })
    }
}
