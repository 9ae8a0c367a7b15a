//! Hands out invoice numbers: each is printed once.
//!
//! ```sh
//! invoice next      # the next number
//! ```

mod counter;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words != ["next"] {
        eprintln!("usage: invoice next");
        return ExitCode::from(2);
    }
    match counter::next(Path::new("last-invoice")) {
        Ok(number) => {
            println!("{number}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("invoice: {e}");
            ExitCode::FAILURE
        }
    }
}
