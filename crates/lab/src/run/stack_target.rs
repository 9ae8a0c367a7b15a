//! dd's copies on a variant's stack.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use steadfast_bench::dd::place::{
    self, DdTarget, NotOpened, OWN_DISK, OpenResult, Snk, Src, named,
};
use steadfast_bench::dd::{self, Counts, DdFailure, Job, Operands, Reporter, Tally};
use steadfast_block::BlockDevice;
use steadfast_runtime::Mutex;
use steadfast_setup::Stack;
use steadfast_vfs::{FileSystem, NewNode};

use crate::scenario::operands;
use crate::{Result, VariantError};

/// A stack as dd sees it.
pub(super) struct StackTarget<'s>(pub &'s Stack);

impl StackTarget<'_> {
    /// Runs dd: the counts, and what it said; `Err` only where nothing could be begun.
    pub fn copy(&self, line: &str) -> Result<(Counts, DdMessages)> {
        let operands = operands(line)?;
        let (said, tally) = (DdMessages::default(), Tally::default());
        let failed = |said: String| VariantError::Dd { line: line.to_owned(), said };
        let not_opened = |e: NotOpened| failed(e.to_string());
        let (Some(from), Some(to)) = (&operands.input, &operands.output) else {
            return Err(failed("if= and of= are needed".into()));
        };
        let source = place::source(self, named(from), &operands)?.map_err(not_opened)?;
        let mut source = place::charged(self, source, &operands);
        let opened = place::sink(self, named(to), &operands, &said)?.map_err(not_opened)?;
        let (mut sink, whole) = opened;
        let (source, sink) = (&mut *source, &mut *sink);
        let operands = &operands;
        let (tally, reporter) = (&tally, &said);
        let done = dd::run(Job { operands, source, sink, tally, reporter, failed: !whole });
        if done == Err(DdFailure) && tally.counts().bytes == 0 {
            return Err(failed(said.words()));
        }
        Ok((tally.counts(), said))
    }

    /// Runs dd, all of which must go well.
    pub fn copy_silently(&self, line: &str) -> Result<()> {
        match self.copy(line)?.1.words() {
            none if none.is_empty() => Ok(()),
            said => Err(VariantError::Dd { line: line.to_owned(), said }),
        }
    }
}

/// What dd says beside its counts.
#[derive(Default)]
pub(super) struct DdMessages(Mutex<Vec<String>>);

impl DdMessages {
    /// All of it.
    pub fn words(&self) -> String {
        self.0.lock().join("; ")
    }
}

impl Reporter for DdMessages {
    fn says(&self, message: &str) {
        self.0.lock().push(message.to_owned());
    }

    fn line(&self, _line: &str) {}
}

impl DdTarget for StackTarget<'_> {
    type Error = VariantError;

    fn fs(&self) -> Result<Arc<dyn FileSystem>> {
        Ok(self.0.mounted()?)
    }

    fn device(&self, name: &str) -> Result<Arc<dyn BlockDevice>> {
        Ok(match name {
            OWN_DISK => self.0.own_disk()?,
            name => self.0.device(name)?,
        })
    }

    fn record_cost(&self, of_device: bool) -> Duration {
        self.0.setup().machine.dd_record(of_device)
    }

    fn host_source(&self, _: &OsStr, _: &Operands) -> Result<OpenResult<Src>> {
        Err(VariantError::NoHost)
    }

    fn host_sink(
        &self,
        _: &OsStr,
        _: &Operands,
        _: &dyn Reporter,
    ) -> Result<OpenResult<(Snk, bool)>> {
        Err(VariantError::NoHost)
    }

    fn new_node(&self) -> NewNode {
        NewNode { mode: 0o644, uid: 0, gid: 0, umask: 0 }
    }
}
