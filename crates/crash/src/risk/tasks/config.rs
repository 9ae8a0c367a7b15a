//! Configurations: a new file is written and renamed over the old one.

use steadfast_vfs::Result;

use super::super::task::{Task, TaskClient};

/// Bytes of a configuration, written in two calls.
const BYTES: u64 = 8 << 10;

/// See the module's text.
pub struct ConfigTask {
    configs: u64,
    written: u64,
}

impl ConfigTask {
    /// So many configurations.
    pub fn new(configs: u64) -> Self {
        ConfigTask { configs, written: 0 }
    }
}

impl Task for ConfigTask {
    fn folders(&self) -> &'static [&'static str] {
        &["config"]
    }

    fn round(&mut self, client: &mut TaskClient) -> Result<()> {
        let new = format!("config/{}.new", self.written);
        self.written += 1;
        let with_care = client.choices.percent(50);
        let file = client.create(&new)?;
        client.write(file, 0, BYTES / 2)?;
        client.write(file, BYTES / 2, BYTES / 2)?;
        if with_care {
            client.sync(file, false)?;
        }
        client.close(file)?;
        let which = client.choices.below(self.configs);
        client.rename(&new, &format!("config/config-{which}"))?;
        if with_care {
            client.sync_folder("config")?;
        }
        Ok(())
    }
}
