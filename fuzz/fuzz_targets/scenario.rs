//! A scenario in TOML: read, and looked at as `lab check` does it.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_lab::check;
use steadfast_lab::scenario::Scenario;

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Scenario::parse(text, "scenario.toml") {
        Ok(scenario) => {
            for variant in &scenario.variants {
                let _ = scenario.leaves(variant);
                let _ = scenario.lies(variant);
            }
            if let Err(why) = check(&scenario) {
                drop(why.to_string());
            }
        }
        Err(why) => drop(why.to_string()),
    }
}

steadfast_fuzz::target!(run);
