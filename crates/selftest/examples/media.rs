//! What each kind of medium breaks, for which set-up: the table of README.md and docs/risk.md.
//!
//! ```sh
//! cargo run --release -p steadfast-selftest --example media -- [STATES] [KIND]
//! ```
//!
//! STATES: at each cut, at most (12). KIND: that kind of medium alone.
//!
//! Exit status: 0, whatever breaks: 1 only if a medium that keeps its contract breaks something on
//! a file system with a journal; 2 used wrongly, or the test itself failed.

// It is for people.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;

use steadfast_devices::filter::record::Media;
use steadfast_selftest::media::{Setups, cell, contract, in_contract, kinds, plan};

fn main() -> ExitCode {
    match run() {
        Ok(good) => ExitCode::from(u8::from(!good)),
        Err(why) => {
            println!("{why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let states = args.first().map_or(Ok(12), |word| word.parse());
    let states = states.map_err(|e| format!("{}: {e}", args[0]))?;
    let kinds = match args.get(1) {
        Some(kind) => vec![kind.parse::<Media>().map_err(|e| e.to_string())?],
        None => kinds(),
    };
    let heads = Setups::ALL.map(Setups::name);
    println!("| medium | contract | {} |", heads.join(" | "));
    println!("|---|---|{}", "---|".repeat(heads.len()));
    let mut good = true;
    for media in kinds {
        let mut cells = Vec::new();
        for setup in Setups::ALL {
            let made = setup.make().map_err(|e| e.to_string())?.on(media);
            let why = |e| format!("{media}, {}: {e}", setup.name());
            let cell = cell(&made, &plan(states)).map_err(why)?;
            good &= !in_contract(media) || setup == Setups::Ext2 || cell.wrong() == 0;
            cells.push(cell.to_string());
        }
        println!("| {media} | {} | {} |", contract(media), cells.join(" | "));
    }
    Ok(good)
}
