//! What describes a RAM disk.

use std::sync::Arc;

use super::Ram;
use crate::model::parameters::{
    Describe, ModelKind, Size, Source, describe_parameters, parameters,
};
use crate::model::{Model, ModelError, ModelParams};

parameters! {
    /// The parameters of a RAM disk.
    pub struct RamParams {
        /// Its size, with k, m, g; a rest that is no whole block of 4096 bytes is not used.
        size: Size = Size(256 << 20), "bytes", Source::Choice;
        /// Whether it says that its contents survive a power cut.
        persistent: bool = false, "", Source::Choice;
        /// Whether completed writes may be lost until a flush.
        volatile_cache: bool = false, "", Source::Choice;
    }
}

impl Describe for RamParams {
    const KIND: ModelKind = ModelKind {
        name: "ram",
        title: "RAM disk",
        preset: "",
        physics: "none: requests take no time",
        parameters: RamParams::PARAMETERS,
        is_memory: true,
        default: || ModelParams::Ram(RamParams::default()),
        test_disk_bytes_min: Some(1 << 20),
    };

    describe_parameters!();

    fn description(&self) -> String {
        let Size(bytes) = self.size;
        match bytes {
            0..0x10_0000 => format!("RAM disk of {} KiB", bytes >> 10),
            _ => format!("RAM disk of {} MiB", bytes >> 20),
        }
    }

    fn check(&self) -> Result<(), ModelError> {
        let Size(bytes) = self.size;
        if (4096..=1 << 50).contains(&bytes) {
            return Ok(());
        }
        Err(ModelError::Parameter {
            model: Self::KIND.name,
            name: "size",
            value: bytes.to_string(),
            why: "must be from 4096 bytes to 1024 TiB".into(),
        })
    }

    fn build(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        self.check()?;
        let mut ram = Ram::new(name, self.bytes());
        if self.persistent {
            ram = ram.persistent();
        }
        if self.volatile_cache {
            ram = ram.with_volatile_cache();
        }
        Ok(Arc::new(ram))
    }

    fn bytes(&self) -> u64 {
        self.size.0 / 4096 * 4096
    }

    fn test_disk(self, bytes: u64) -> Self {
        RamParams { size: Size(bytes), persistent: true, volatile_cache: true }
    }
}
