//! What a device that is memory is used as: in place, as blocks, or as sectors.
//!
//! The names are those of ndctl. A recording is put below: it sees what reaches the memory.

use std::sync::Arc;

use serde::Deserialize;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request};
use steadfast_devices::filter::btt;

use crate::SetupError;
use crate::volumes::Volumes;

/// How memory is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Namespace {
    /// Blocks, and files that can be used in place (DAX).
    #[default]
    Fsdax,
    /// Blocks only, of which a cut keeps words.
    Raw,
    /// Sectors of 4096 bytes that do not tear (a block translation table).
    Sector,
}

impl Namespace {
    /// For people, after the device; empty for the one that needs no words.
    pub fn in_words(self) -> &'static str {
        match self {
            Namespace::Fsdax => "",
            Namespace::Raw => ", raw namespace",
            Namespace::Sector => ", sector namespace",
        }
    }

    /// Opens it on a device; makes it first where there is none yet.
    ///
    /// # Errors
    /// The device is not memory or too small, or holds no whole namespace.
    pub(crate) fn open(
        self,
        device: Arc<dyn BlockDevice>,
        state: Volumes,
    ) -> Result<Arc<dyn BlockDevice>, SetupError> {
        match self {
            Namespace::Fsdax => Ok(device),
            _ if state == Volumes::Planned => Ok(device),
            Namespace::Raw => Ok(Arc::new(Raw(device))),
            Namespace::Sector => {
                if state != Volumes::Found {
                    btt::format(&device, btt::Options::default())?;
                }
                Ok(Arc::new(btt::open(&device)?))
            }
        }
    }
}

/// A device of which nobody knows that it is memory.
struct Raw(Arc<dyn BlockDevice>);

impl BlockDevice for Raw {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&self, request: Request) -> Completion {
        self.0.submit(request)
    }
}

#[cfg(test)]
mod tests {
    use steadfast_block::conformance;
    use steadfast_devices::model::{Nvdimm, NvdimmParams};

    use super::*;

    fn memory() -> Arc<dyn BlockDevice> {
        let params = NvdimmParams { size_mib: 32, ..NvdimmParams::default() };
        Arc::new(Nvdimm::new("pmem", &params).unwrap())
    }

    #[test]
    fn each_conforms_and_only_one_is_used_in_place() {
        for (namespace, atomic) in
            [(Namespace::Fsdax, 8), (Namespace::Raw, 8), (Namespace::Sector, 4096)]
        {
            let make = || namespace.open(memory(), Volumes::New).unwrap();
            conformance::run(&make);
            let device = make();
            assert_eq!(device.info().atomic_write, atomic);
            assert_eq!(device.direct_memory().is_some(), namespace == Namespace::Fsdax);
        }
    }

    #[test]
    fn sectors_are_found_again_and_made_only_where_nothing_is() {
        let memory = memory();
        let none = Namespace::Sector.open(Arc::clone(&memory), Volumes::Found).map(drop);
        assert!(none.unwrap_err().to_string().contains("no sector namespace"));
        let open = |state| Namespace::Sector.open(Arc::clone(&memory), state).unwrap();
        open(Volumes::New).write(4096, vec![7; 4096].into()).unwrap();
        assert_eq!(open(Volumes::Found).read(4096, 4096).unwrap(), vec![7; 4096]);
    }
}
