//! The configuration of a stack host, in TOML.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_stack::HostConfig;

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match HostConfig::parse(text, "stack.toml") {
        Ok(config) => drop(format!("{config:?}")),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}

steadfast_fuzz::target!(run);
