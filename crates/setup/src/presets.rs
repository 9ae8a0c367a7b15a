//! Common devices by name: a model with the parameters of a named part.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use steadfast_devices::model::KINDS;
use steadfast_devices::model::ModelParams;

use crate::form::{FormValue, one_of};

/// All of them, as tables of a scenario, each with the sources of its figures.
pub const PRESETS: &str = include_str!("../presets.toml");

/// Each with its parameters. What cannot be read is left out; a test reads all of them.
static ALL: LazyLock<BTreeMap<String, ModelParams>> = LazyLock::new(|| {
    let file: toml::Table = toml::from_str(PRESETS).unwrap_or_default();
    let devices = file.get("device").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    devices
        .into_iter()
        .filter_map(|(name, table)| Some((name, params(table.as_table()?)?)))
        .collect()
});

fn params(table: &toml::Table) -> Option<ModelParams> {
    let kind = table.get("kind")?.as_str()?;
    let kind = KINDS.iter().find(|known| known.name == kind)?;
    let mut params = (kind.default)();
    for (key, value) in table.iter().filter(|(key, _)| *key != "kind") {
        params.set(key, value.clone())?.ok()?;
    }
    params.check().ok()?;
    Some(params)
}

/// The one that is named; that there is none is noted.
pub(crate) fn of(place: &FormValue<'_>) -> Option<ModelParams> {
    let all: Vec<(&str, &ModelParams)> =
        ALL.iter().map(|(name, params)| (name.as_str(), params)).collect();
    one_of(place, "there is no preset", &all).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_read() {
        let headings = PRESETS.lines().filter(|line| line.starts_with("[device.")).count();
        assert_eq!((ALL.len(), headings), (11, 11));
        let kinds: Vec<&str> = ["disk-7200", "nvme", "sata-ssd", "emmc", "sd-card"]
            .iter()
            .map(|name| ALL[*name].kind().name)
            .collect();
        assert_eq!(kinds, ["hdd", "ssd", "ssd", "emmc", "emmc"]);
    }
}
