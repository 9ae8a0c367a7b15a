//! `[[published]]` of a scenario file: figures of somebody else, of the tests that are run.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeValue;

use super::fields::Fields;
use super::keys::Table;
use super::wrong::did_you_mean;
use super::{PublishedSpeed, Workload};
use crate::run::test_names;

/// What published figures can be of.
pub(super) struct PublishedScope<'a> {
    pub(super) tests: Vec<String>,
    pub(super) variants: Vec<&'a str>,
    pub(super) devices: Vec<&'a str>,
}

/// The names of all tests, those that the scenario gives too.
pub(super) fn tests(workload: Option<&Workload>) -> Vec<String> {
    let mut tests: Vec<String> = test_names().into_iter().map(str::to_owned).collect();
    let Some(workload) = workload else { return tests };
    tests.extend(workload.dd.iter().map(|spec| spec.test.clone()));
    let hdparm = workload.hdparm.iter();
    tests.extend(hdparm.flat_map(|spec| spec.targets.iter().flat_map(|t| spec.tests(t))));
    tests
}

/// The figures that somebody else has published.
pub(super) fn published(
    top: &Fields<'_, '_>,
    known: &PublishedScope<'_>,
) -> Option<Vec<PublishedSpeed>> {
    let tables = top.tables("published", Table::Published);
    let read: Vec<_> = tables.iter().map(|fields| one_published(fields, known)).collect();
    read.into_iter().collect()
}

fn one_published(fields: &Fields<'_, '_>, names: &PublishedScope<'_>) -> Option<PublishedSpeed> {
    let test: Option<String> = fields.take("test");
    if let Some(test) = test.as_ref().filter(|t| !names.tests.contains(t)) {
        let help = did_you_mean(test, names.tests.iter().map(String::as_str));
        fields.wrong("test", format!("there is no test `{test}`"), help);
    }
    // A device is timed by itself, whatever stands on it.
    let of_devices = test.as_ref().is_some_and(|test| test.starts_with("hdparm "));
    for key in ["kb_per_s", "seconds"] {
        let Some(DeValue::Table(map)) = fields.value(key).map(Spanned::get_ref) else { continue };
        let devices = names.devices.iter().filter(|_| of_devices);
        let known = || names.variants.iter().chain(devices.clone()).copied();
        for key in map.keys().filter(|key| !known().any(|name| name == key.get_ref())) {
            let help = did_you_mean(key.get_ref(), known());
            let what = format!("there is no variant `{}`", key.get_ref());
            fields.wrongs().add(key.span(), what, help);
        }
    }
    let figures = |key| match fields.value(key) {
        Some(_) => fields.take::<BTreeMap<String, f64>>(key),
        None => Some(BTreeMap::new()),
    };
    if ["kb_per_s", "seconds"].into_iter().filter(|k| fields.value(k).is_some()).count() != 1 {
        fields.wrong("test", "it needs one of `kb_per_s` and `seconds`", "");
    }
    let (figure, kb_per_s, seconds) =
        (fields.take("figure"), figures("kb_per_s"), figures("seconds"));
    let seconds = seconds?;
    if seconds.values().any(|s| !(*s > 0.0 && s.is_finite())) {
        fields.wrong("seconds", "a time is above 0", "");
    }
    Some(PublishedSpeed { test: test?, figure: figure?, kb_per_s: kb_per_s?, seconds })
}
