use steadfast_block::conformance;

use super::testbench::simulate;
use super::*;

#[test]
fn a_scenario_names_the_kind_and_what_differs_from_the_preset() {
    let given: ModelParams = toml::from_str("kind = \"hdd\"\nwrite_cache = \"on\"").unwrap();
    let ModelParams::Hdd(p) = &given else { panic!("{given:?}") };
    assert_eq!(p.write_cache, hdd::WriteCache::On);
    assert!(toml::from_str::<ModelParams>("kind = \"hdd\"\nwrite_cach = \"on\"").is_err());
    assert!(toml::from_str::<ModelParams>("kind = \"tape\"").is_err());
    for kind in ["hdd", "nvram", "ssd", "emmc"] {
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
