//! Drives of one class, each a file of parameters with their sources.

use serde::Deserialize;
use steadfast_devices::model::{HddParams, ModelParams};

use crate::scenario::Scenario;

/// A drive: what it is, where its figures are from, and the figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// By which a scenario names it: its file's.
    #[serde(skip)]
    pub name: &'static str,
    /// Maker, model, capacity, size, year.
    pub title: String,
    /// Each group of parameters with its source, or "assumed" with the reason.
    pub sources: Vec<String>,
    /// The model; what the file leaves out is the default's.
    pub hdd: HddParams,
}

const FILES: [(&str, &str); 5] = [
    ("cheetah-15k6", include_str!("../../drives/cheetah-15k6.toml")),
    ("cheetah-15k7", include_str!("../../drives/cheetah-15k7.toml")),
    ("savvio-15k2", include_str!("../../drives/savvio-15k2.toml")),
    ("savvio-15k3", include_str!("../../drives/savvio-15k3.toml")),
    ("mk1401grrb", include_str!("../../drives/mk1401grrb.toml")),
];

/// All drives.
pub fn drives() -> impl Iterator<Item = DriveSpec> {
    FILES.iter().map(|(name, text)| {
        // OK to expect: a test reads every one of them.
        let mut drive: DriveSpec = toml::from_str(text).expect("a drive's file");
        drive.name = name;
        drive.hdd.description = drive.title.clone();
        drive
    })
}

/// The drive of this name.
pub fn drive(name: &str) -> Option<DriveSpec> {
    drives().find(|drive| drive.name == name)
}

impl DriveSpec {
    /// The scenario with the drive in the place of a device, which keeps its write cache: that is
    /// another choice. `None`: it is that drive already, or no model.
    pub(crate) fn in_place_of(&self, device: &str, scenario: &Scenario) -> Option<Scenario> {
        let mut hdd = self.hdd.clone();
        if let ModelParams::Hdd(own) = scenario.model(device)? {
            hdd.write_cache = own.write_cache;
            if *own == (HddParams { description: own.description.clone(), ..hdd.clone() }) {
                return None;
            }
        }
        Some(scenario.with_model(device, ModelParams::Hdd(hdd)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drive_is_a_disk_that_can_be_built() {
        for drive in drives() {
            assert!(!drive.sources.is_empty(), "{}", drive.name);
            let model = ModelParams::Hdd(drive.hdd);
            model.check().unwrap_or_else(|e| panic!("{}: {e}", drive.name));
        }
        assert!(drive("savvio-15k3").is_some_and(|d| d.title.contains("ST9146853SS")));
        assert_eq!(drive("drum"), None);
    }
}
