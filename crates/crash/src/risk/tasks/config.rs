//! Configurations: a new file is written and renamed over the old one.

use steadfast_vfs::Result;

use super::super::task::{Task, TaskClient};

/// Bytes of a configuration, written in two calls.
const BYTES: u64 = 8 << 10;

/// See the module's text.
#[derive(Default)]
pub struct ConfigTask {
    written: u64,
}

impl Task for ConfigTask {
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
        let which = client.choices.below(client.parameters.configs);
        client.rename(&new, &format!("config/config-{which}"))?;
        if with_care {
            client.sync_folder("config")?;
        }
        Ok(())
    }
}
