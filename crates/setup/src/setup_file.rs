//! The file of a setup: one stack, and nothing that is run on it.

use std::collections::BTreeMap;

use steadfast_devices::filter::schedule::SchedulerSettings;
use toml::de::DeTable;

use crate::form::{Fields, WrongFile, read_text};
use crate::tables::{StackForm, check_file_system};
use crate::{Machine, Setup, Topology, table};

table! {
    /// A setup as its file has it.
    pub struct SetupForm: "the file", with topology: Topology, check SetupForm::check {
        /// Table: the machine.
        machine: Machine, else "its defaults";
        /// Tables: request schedulers, by name.
        schedulers as "scheduler": BTreeMap<String, SchedulerSettings>, else "none";
        /// Table: what the file system stands on, and its options.
        stack: StackForm;
    }
}

impl SetupForm {
    fn check(top: &Fields<'_>, _: Option<&SetupForm>) {
        if let Some(stack) = top.at("stack").and_then(|place| place.fields(StackForm::TITLE)) {
            check_file_system(&stack, top, true);
        }
    }
}

impl Setup {
    /// Whether a file is a setup's: it has `[stack]`, and nothing to run.
    pub fn is_described_by(text: &str) -> bool {
        let (file, _) = DeTable::parse_recoverable(text);
        let has = |key: &str| file.get_ref().contains_key(key);
        has("stack") && !has("workload") && !has("variant")
    }

    /// Reads the text of a setup's file, which messages call `origin`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, origin: &str) -> Result<Setup, WrongFile> {
        let mut form = read_text(text, |_| (), SetupForm::read_whole)
            .map_err(|wrongs| WrongFile::new(origin, text, wrongs, ""))?;
        form.topology.said_in(origin);
        Ok(form.stack.setup(&form.topology, &form.schedulers, &form.machine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_is_read_or_all_its_mistakes_are_shown() {
        let text = "\
[stack]
disk = 'left'
journal = 'card'
scheduler = 'ordered'
mount = 'data=journal'

[device.left]
kind = 'ssd'

[device.card]
kind = 'nvram'

[scheduler.ordered]
depth = 4

[machine]
memory_mb = 16
";
        assert!(Setup::is_described_by(text));
        assert!(!Setup::is_described_by(&format!("{text}\n[workload]\nfiles = {{}}\n")));
        let setup = Setup::parse(text, "s.toml").unwrap();
        assert_eq!(setup.leaves(), ["left", "card"]);
        assert_eq!(setup.scheduler.map(|scheduler| scheduler.depth), Some(4));
        assert_eq!((setup.mount.as_str(), setup.machine.memory_mb), ("data=journal", Some(16)));

        let path = text.replace("kind = 'ssd'", "path = 'volume:a,raw:b,/c'");
        let setup = Setup::parse(&path, "/x/s.toml").unwrap();
        let left = setup.topology.devices["left"].description();
        assert_eq!(left, "volume:/x/a,raw:/x/b,/c");

        let wrong = text.replace("'left'\nj", "'lfet'\nj").replace("data=journal", "data=journa");
        let wrong = Setup::parse(&wrong.replace("16", "0"), "s.toml").unwrap_err();
        let places: Vec<String> = (wrong.wrongs.iter())
            .map(|wrong_place| {
                let line = wrong.text[..wrong_place.at.start].lines().count();
                format!("{line}: {}", wrong_place.what)
            })
            .collect();
        assert_eq!(
            places,
            [
                "2: there is no [device.lfet]",
                "5: mount option data=journa: journa is unknown: did you mean journal? (choose \
                 writeback, ordered, journal or transact)",
                "17: `memory_mb` must be from 4 to 1048576, not 0",
            ]
        );
    }
}
