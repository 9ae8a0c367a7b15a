//! The table of docs/risk.md: what each kind of medium breaks, for whom.
//!
//! `cargo run -p steadfast-crash --example media -- [STATES [MEDIUM]]`: at each cut up to STATES
//! states (12).

use std::process::ExitCode;

use steadfast_crash::media::{Setups, cell, contract, plan};
use steadfast_devices::filter::record::Media;

fn main() -> ExitCode {
    match table() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn table() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let states = words.next().map_or(Ok(12), |n| n.parse().map_err(|e| format!("{n}: {e}")))?;
    let only: Option<Media> = words.next().map(|name| name.parse()).transpose()?;
    let heads: Vec<&str> = Setups::ALL.iter().map(|setup| setup.name()).collect();
    println!("| medium | contract | {} |", heads.join(" | "));
    println!("|---|---|{}", "---|".repeat(heads.len()));
    for (name, media) in Media::ALL.into_iter().filter(|(_, m)| only.is_none_or(|o| o == *m)) {
        let mut cells = Vec::new();
        for setup in Setups::ALL {
            let cell = cell(&setup.make()?.on(media), plan(states))?;
            if let Some(first) = &cell.first {
                eprintln!("{name}, {}: {first}", setup.name());
            }
            cells.push(cell.to_string());
        }
        println!("| {name} | {} | {} |", contract(media), cells.join(" | "));
    }
    println!("\nR: the mount was refused, or a person is needed. D: damaged. B: something promised");
    println!("is missing, or bytes are there that were never written there.");
    Ok(())
}
