//! Serves the device of a setup file, a model, in real time as a block device, until its standard
//! input ends: something with known parameters to calibrate. Needs root.
//!
//! ```text
//! cargo run --release -p steadfast-lab --example modelled -- SETUP.toml
//! ```

// The path is its answer.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_peers::LoopExport;
use steadfast_setup::Setup;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which setup file?")?;
    let text = std::fs::read_to_string(&path)?;
    let setup = Setup::parse(&text, &path).map_err(|e| e.to_string())?;
    let (name, spec) = setup.topology.devices.first_key_value().ok_or("it has no device")?;
    let model: Arc<dyn BlockDevice> = spec.model().ok_or("it is no model")?.build(name)?;
    let exported = LoopExport::new(model)?;
    println!("{}", exported.path().display());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(exported.take_away()?)
}
