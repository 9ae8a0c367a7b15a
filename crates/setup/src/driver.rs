//! What a driver costs the processor: so much for each request, and a copy of what a request moves.
//!
//! A model of a device takes the time that the device takes. What the machine does for a request
//! beside waiting occupies one of its processors, and on a machine with one nothing else runs
//! meanwhile. So a RAM disk is memory that takes no time, behind a driver that copies.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request};
use steadfast_runtime::cpu;

/// The cost of each request.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DriverCost {
    /// Processor time of a request.
    pub request: Duration,
    /// Rate at which the processor copies the data of a request, in MB/s of 1,000,000 bytes;
    /// `None`: the device moves them by itself.
    pub copy_mb_per_s: Option<f64>,
}

impl DriverCost {
    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        *self != DriverCost::default()
    }

    /// Processor time of a request that moves so many bytes.
    fn of(&self, bytes: u64) -> Duration {
        let copy = self.copy_mb_per_s.map_or(0.0, |rate| bytes as f64 / (rate * 1e6));
        self.request + Duration::from_secs_f64(copy)
    }
}

/// A device behind a driver.
pub struct Driver {
    next: Arc<dyn BlockDevice>,
    cost: DriverCost,
}

impl Driver {
    /// Puts a driver before a device.
    pub fn new(next: Arc<dyn BlockDevice>, cost: DriverCost) -> Driver {
        Driver { next, cost }
    }
}

impl BlockDevice for Driver {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        let bytes = match &request {
            Request::Read { len, .. } => *len,
            Request::Write { data, .. } => data.len() as u64,
            Request::Discard { .. } | Request::Flush => 0,
        };
        cpu(self.cost.of(bytes));
        self.next.submit(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_block::conformance;
    use steadfast_devices::source::Ram;
    use steadfast_runtime::{Sim, now};

    const COST: DriverCost =
        DriverCost { request: Duration::from_micros(10), copy_mb_per_s: Some(100.0) };

    fn make() -> Arc<dyn BlockDevice> {
        Arc::new(Driver::new(Arc::new(Ram::new("ram", 1 << 20)), COST))
    }

    #[test]
    fn conforms() {
        conformance::run(&make);
    }

    #[test]
    fn each_request_takes_the_processor() {
        let took = Sim::new(1).cpus(1).run(|| {
            let device = make();
            let began = now();
            device.write(0, vec![1; 4096].into()).unwrap();
            device.read(0, 512).unwrap();
            device.flush().unwrap();
            now().since(began)
        });
        // 10 us each, and 4096 and 512 bytes at 100 MB/s.
        assert_eq!(took, Ok(Duration::from_nanos(10_000 + 40_960 + 10_000 + 5_120 + 10_000)));
    }
}
