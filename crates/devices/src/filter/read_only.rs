//! A read-only view of a device.

use std::sync::Arc;

use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request, check};

/// A device through which nothing can be written.
pub struct ReadOnly {
    next: Arc<dyn BlockDevice>,
}

impl ReadOnly {
    /// Guards `next`.
    pub fn new(next: Arc<dyn BlockDevice>) -> Self {
        ReadOnly { next }
    }
}

impl BlockDevice for ReadOnly {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { read_only: true, ..self.next.info() }
    }

    fn submit(&self, request: Request) -> Completion {
        match check(&self.info(), &request) {
            Ok(()) => self.next.submit(request),
            Err(refused) => Completion::ready(Err(refused)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Ram;
    use steadfast_block::conformance;
    use steadfast_runtime::Sim;

    #[test]
    fn conforms() {
        let make = || -> Arc<dyn BlockDevice> {
            Arc::new(ReadOnly::new(Arc::new(Ram::new("ram0", 1 << 20))))
        };
        conformance::run(&make);
        Sim::new(1).run(move || conformance::run(&make)).unwrap();
    }
}
