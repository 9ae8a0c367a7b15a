//! The file system of a description: keys that name its devices, and its options.

use std::collections::BTreeMap;

use steadfast_devices::filter::schedule::SchedulerSettings;

use crate::form::{Fields, did_you_mean};
use crate::{Machine, Setup, Topology, options, table};

table! {
    /// What a file system stands on, and its options: of a setup, and of a scenario's variant.
    pub struct StackForm: "[stack]" {
        /// The device or volume that holds the file system.
        disk: String;
        /// The device or volume that holds an external journal.
        journal: Option<String>, else "on the disk";
        /// The request scheduler before the disk, a `[scheduler.NAME]`.
        scheduler: Option<String>, else "none";
        /// Options of `steadfast mkfs`, separated by spaces; of a variant with `kernel`, of its own
        /// mkfs.
        mkfs: String = "";
        /// Mount options of the file system, separated by commas (docs/mount.md); of a variant with
        /// `kernel`, words for mount(8).
        mount: String = "";
    }
}

impl StackForm {
    /// The setup, with what the names stand for.
    pub fn setup(
        &self,
        topology: &Topology,
        schedulers: &BTreeMap<String, SchedulerSettings>,
        machine: &Machine,
    ) -> Setup {
        Setup {
            topology: topology.clone(),
            disk: self.disk.clone(),
            journal: self.journal.clone(),
            scheduler: self.scheduler.as_ref().and_then(|name| schedulers.get(name)).cloned(),
            mkfs: self.mkfs.clone(),
            mount: self.mount.clone(),
            machine: machine.clone(),
        }
    }
}

/// Notes what is wrong with `disk`, `journal`, `scheduler`, `mkfs` and `mount` of a table: devices
/// and schedulers that the file has not, and, if the file system `is_ours`, options that are none.
pub fn check_file_system(fields: &Fields<'_>, top: &Fields<'_>, is_ours: bool) {
    let volumes = top.names("volume");
    let known: Vec<String> = top.names("device").into_iter().chain(volumes.clone()).collect();
    let named = ["disk", "journal"].map(|key| (key, fields.get::<String>(key)));
    for (key, name) in named.iter().filter_map(|(key, name)| Some((key, name.as_ref()?))) {
        if !known.contains(name) {
            let or_volume = match volumes.first() {
                Some(_) => format!(" or [volume.{name}]"),
                None => String::new(),
            };
            let help = did_you_mean(name, known.iter().map(String::as_str));
            fields.wrong(key, format!("there is no [device.{name}]{or_volume}"), help);
        }
    }
    if let [(_, Some(disk)), (key, Some(journal))] = &named {
        if disk == journal {
            let help = "leave `journal` out for a journal on the disk";
            fields.wrong(key, "journal and disk are the same device", help);
        } else if let Some(topology) = Topology::take(&top.quiet()) {
            let of_disk = topology.leaves_of(disk);
            let both = topology.leaves_of(journal).into_iter();
            for name in both.filter(|name| of_disk.contains(name)) {
                let help = "each place needs a device of its own";
                fields.wrong(key, format!("device `{name}` is in the disk too"), help);
            }
        }
    }
    let schedulers = top.names("scheduler");
    if let Some(name) = fields.get("scheduler").filter(|name| !schedulers.contains(name)) {
        let help = did_you_mean(&name, schedulers.iter().map(String::as_str));
        fields.wrong("scheduler", format!("there is no [scheduler.{name}]"), help);
    }
    if !is_ours {
        return;
    }
    let text = |key| fields.get::<String>(key).unwrap_or_default();
    for (word, what) in options::read_mkfs(&text("mkfs")).err().unwrap_or_default() {
        fields.wrong_word("mkfs", &word, what);
    }
    for option in options::read_mount(&text("mount")).err().unwrap_or_default() {
        fields.wrong_word("mount", &option.word, option.to_string());
    }
}
