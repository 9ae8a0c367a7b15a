//! The kernel's switch for FUSE io_uring.

use std::path::Path;

use anyhow::Context;

const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

/// It is on, and as it was before when this is dropped.
pub struct FuseUring {
    before: String,
}

impl FuseUring {
    /// Switches it on.
    pub fn on() -> anyhow::Result<FuseUring> {
        let switch = Path::new(SWITCH);
        let before = std::fs::read_to_string(switch)
            .context("this kernel has none (Linux 6.14 has, once its module fuse is loaded)")?;
        std::fs::write(switch, "Y").context("only root may switch it on")?;
        Ok(FuseUring { before })
    }
}

impl Drop for FuseUring {
    fn drop(&mut self) {
        // OK to ignore: it could be written a moment ago.
        let _ = std::fs::write(SWITCH, self.before.trim());
    }
}
