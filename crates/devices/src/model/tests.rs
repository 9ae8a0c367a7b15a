use std::sync::Arc;

use steadfast_block::{BlockDevice, conformance};

use super::testbench::simulate;
use super::*;

#[test]
fn a_scenario_names_the_kind_and_what_differs_from_the_preset() {
    let given: ModelParams = toml::from_str("kind = \"hdd\"\nwrite_cache = \"on\"").unwrap();
    let ModelParams::Hdd(p) = &given else { panic!("{given:?}") };
    assert_eq!(p.write_cache, hdd::WriteCache::On);
    assert!(toml::from_str::<ModelParams>("kind = \"hdd\"\nwrite_cach = \"on\"").is_err());
    assert!(toml::from_str::<ModelParams>("kind = \"tape\"").is_err());
    for kind in ["hdd", "nvram", "nvdimm", "ssd", "emmc", "ram"] {
        let given: ModelParams = toml::from_str(&format!("kind = \"{kind}\"")).unwrap();
        let again: ModelParams = toml::from_str(&toml::to_string(&given).unwrap()).unwrap();
        assert_eq!(given, again);
        simulate(move || {
            let device = given.build("d0").unwrap();
            device.write(0, vec![9; 512].into()).unwrap();
            device.flush().unwrap();
            assert_eq!(device.contents().read(0, 512), vec![9; 512]);
            assert_eq!(device.promise(), Promise::Honest);
        });
    }
}

/// Every model with every cache it can have.
fn all() -> Vec<ModelParams> {
    let hdd = |write_cache| ModelParams::Hdd(HddParams { write_cache, ..HddParams::default() });
    let ssd = |write_cache| ModelParams::Ssd(SsdParams { write_cache, ..SsdParams::default() });
    let emmc = |cache| ModelParams::Emmc(EmmcParams { cache, ..EmmcParams::default() });
    vec![
        hdd(hdd::WriteCache::Off),
        hdd(hdd::WriteCache::On),
        hdd(hdd::WriteCache::Lying),
        ModelParams::Nvram(NvramParams::default()),
        ssd(ssd::SsdCache::Protected),
        ssd(ssd::SsdCache::Volatile),
        ssd(ssd::SsdCache::Off),
        emmc(false),
        emmc(true),
    ]
}

#[test]
fn every_model_conforms_in_simulated_time() {
    for params in all() {
        simulate(move || {
            conformance::run(&|| -> Arc<dyn BlockDevice> { params.build("model").unwrap() });
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
        let kind = parameters::Kind::of_name(kind).unwrap();
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
