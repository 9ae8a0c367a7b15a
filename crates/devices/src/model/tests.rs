use std::sync::Arc;

use steadfast_block::{BlockDevice, conformance};

use super::testbench::simulate;
use super::*;

#[test]
fn a_scenario_names_the_kind_and_what_differs_from_the_preset() {
    let given: ModelParams = toml::from_str("kind = \"hdd\"\nwrite_cache = \"on\"").unwrap();
    let ModelParams::Hdd(p) = &given else { panic!("{given:?}") };
    assert_eq!(p.write_cache, hdd::WriteCacheMode::On);
    assert!(toml::from_str::<ModelParams>("kind = \"hdd\"\nwrite_cach = \"on\"").is_err());
    assert!(toml::from_str::<ModelParams>("kind = \"tape\"").is_err());
    for kind in KINDS {
        let given: ModelParams = toml::from_str(&format!("kind = \"{}\"", kind.name)).unwrap();
        let again: ModelParams = toml::from_str(&toml::to_string(&given).unwrap()).unwrap();
        assert_eq!(given, again);
        simulate(move || {
            let device = given.build("d0").unwrap();
            device.write(0, vec![9; 512].into()).unwrap();
            device.flush().unwrap();
            assert_eq!(device.contents().read(0, 512), vec![9; 512]);
            assert_eq!(device.promise(), FlushBehaviour::Honest);
        });
    }
}

/// Every kind with its defaults, and with every other word or truth value of each parameter: every
/// cache that it can have.
fn all() -> Vec<ModelParams> {
    let mut all = Vec::new();
    for kind in KINDS {
        let default = (kind.default)();
        all.push(default.clone());
        for parameter in kind.parameters {
            let words = (parameter.words)().iter().map(|word| toml::Value::from(*word));
            for value in words.chain([false, true].map(toml::Value::from)) {
                let mut params = default.clone();
                let is_one = params.set(parameter.name, value).is_some_and(|set| set.is_ok());
                if is_one && params.check().is_ok() && !all.contains(&params) {
                    all.push(params);
                }
            }
        }
    }
    all
}

#[test]
fn every_cache_is_among_what_is_tested() {
    let all = all();
    for cache in [hdd::WriteCacheMode::Off, hdd::WriteCacheMode::On, hdd::WriteCacheMode::Lying] {
        let is = |p: &ModelParams| matches!(p, ModelParams::Hdd(p) if p.write_cache == cache);
        assert!(all.iter().any(is), "{cache:?}");
    }
    let caches = [true, false]
        .map(|cache| all.iter().any(|p| matches!(p, ModelParams::Emmc(p) if p.cache == cache)));
    assert_eq!(caches, [true, true]);
    assert!(KINDS.iter().all(|kind| all.iter().any(|p| p.kind_name() == kind.name)));
}

#[test]
fn every_model_conforms_in_simulated_time() {
    for params in all() {
        simulate(move || {
            let make = || -> Arc<dyn BlockDevice> { params.build("model").unwrap() };
            // What was never initialised cannot be read before it was written.
            if make().info().initialised {
                conformance::run(&make);
            }
        });
    }
}

#[test]
fn the_fast_models_conform_in_real_time() {
    for params in
        [ModelParams::Nvram(NvramParams::default()), ModelParams::Ssd(SsdParams::default())]
    {
        conformance::run(&|| -> Arc<dyn BlockDevice> { params.build("model").unwrap() });
    }
}

#[test]
fn every_kind_says_what_it_is_and_takes_its_own_defaults() {
    for kind in KINDS {
        let params = (kind.default)();
        assert_eq!(params.kind_name(), kind.name);
        assert_eq!(params.check(), Ok(()), "{}", kind.name);
        assert!(!params.description().is_empty() && params.bytes() > 0);
        for parameter in kind.parameters {
            assert!(!parameter.summary().is_empty(), "{}.{}", kind.name, parameter.name);
        }
        let size = kind.test_disk_bytes_min.unwrap_or(1 << 30);
        let disk = params.test_disk(size);
        assert_eq!((disk.check(), disk.bytes()), (Ok(()), size), "{}", kind.name);
    }
}

#[test]
fn the_words_of_a_choice_are_known() {
    let words = |kind: &str, name: &str| {
        let kind = parameters::ModelKind::of_name(kind).unwrap();
        (kind.parameters.iter().find(|p| p.name == name).unwrap().words)()
    };
    assert_eq!(words("hdd", "write_cache"), ["off", "on", "lying"]);
    assert!(words("hdd", "rpm").is_empty() && words("nvram", "batteries").is_empty());
}

#[test]
fn a_parameter_is_set_and_reset_by_its_name() {
    let mut disk = ModelParams::Hdd(HddParams::default());
    let table: toml::Table = toml::from_str("rpm = 0\nrp = 1").unwrap();
    assert_eq!(disk.set("rpm", table["rpm"].clone()), Some(Ok(())));
    assert_eq!(disk.set("rp", table["rp"].clone()), None);
    assert!(disk.check().is_err());
    disk.reset("rpm");
    assert_eq!(disk, ModelParams::Hdd(HddParams::default()));
}

#[test]
fn a_scaled_disk_shrinks_and_keeps_its_times() {
    let disk = HddParams::default();
    let ModelParams::Hdd(quarter) = ModelParams::Hdd(disk.clone()).scaled(1 << 30, 4 << 30) else {
        panic!("a disk stays a disk");
    };
    assert_eq!(quarter.sectors, disk.sectors / 32 * 8);
    assert_eq!(HddParams { sectors: disk.sectors, ..quarter }, disk);
    let card = ModelParams::Nvram(NvramParams::default());
    assert_eq!(card.scaled(1, 4), card);
}
