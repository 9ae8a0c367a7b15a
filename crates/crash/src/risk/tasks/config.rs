//! Configurations: a new file is written and renamed over the old one.

use steadfast_vfs::Result;

use super::super::workload::{Hands, Task};

/// Bytes of a configuration, written in two calls.
const BYTES: u64 = 8 << 10;

/// See the module's text.
pub struct Config {
    configs: u64,
    written: u64,
}

impl Config {
    /// So many configurations.
    pub fn new(configs: u64) -> Self {
        Config { configs, written: 0 }
    }
}

impl Task for Config {
    fn folders(&self) -> &'static [&'static str] {
        &["config"]
    }

    fn round(&mut self, hands: &mut Hands) -> Result<()> {
        let new = format!("config/{}.new", self.written);
        self.written += 1;
        let with_care = hands.choices.percent(50);
        let file = hands.create(&new)?;
        hands.write(file, 0, BYTES / 2)?;
        hands.write(file, BYTES / 2, BYTES / 2)?;
        if with_care {
            hands.sync(file, false)?;
        }
        hands.close(file)?;
        let which = hands.choices.below(self.configs);
        hands.rename(&new, &format!("config/config-{which}"))?;
        if with_care {
            hands.sync_folder("config")?;
        }
        Ok(())
    }
}
