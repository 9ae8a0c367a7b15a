//! The devices of the test machines.

use std::sync::Arc;

use steadfast_crash::Result;
use steadfast_crash::explore::ext4::words;
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{Model, ModelParams, SsdParams};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;

/// 2024-01-01: when every machine begins, in seconds.
pub(crate) const EPOCH: u64 = 1_704_067_200;

/// A flash disk whose cache is volatile.
pub(crate) fn flash(name: &str, bytes: u64) -> Result<Arc<dyn Model>> {
    let write_cache = SsdCache::Volatile;
    let params = SsdParams { sectors: bytes / 512, write_cache, ..SsdParams::default() };
    ModelParams::Ssd(params).build(name).map_err(words)
}

/// Memory, of which a cut keeps any aligned words that were not persisted.
pub(crate) fn memory(name: &str, bytes: u64) -> Ram {
    Ram::new(name, bytes).persistent().with_volatile_cache().with_atomic_words()
}

/// What devices hold.
pub(crate) fn held(models: &[Arc<dyn Model>]) -> Vec<Store> {
    models.iter().map(|model| model.contents()).collect()
}
