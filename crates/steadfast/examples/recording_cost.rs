//! What recording costs: the same calls through a mount that passes them on, and through one that
//! records them too, by turns.
//!
//! ```text
//! cargo run --release -p steadfast --example recording_cost -- FOLDER [ROUNDS]
//! ```

// The table is its answer.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use steadfast_fuse::{FuseMount, Options};
use steadfast_trace::format::{FORMAT, NameForm, TraceHeader, TraceOrigin, VERSION};
use steadfast_trace::record::RecordedFs;
use steadfast_vfs::{FileSystem, HostFs};

const CALLS: usize = 3000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().ok_or("which folder?")?;
    let rounds: usize = words.next().map_or(Ok(9), |n| n.parse())?;
    let mut all = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        // Each is first in every other round.
        for turn in [round % 2, 1 - round % 2] {
            let below = tempfile::tempdir_in(&folder)?;
            all[turn].push(measured(below.path(), turn == 1)?);
        }
    }
    println!("us a call, median (least to most) of {rounds} rounds of {CALLS} calls each:");
    for (n, name) in ["write 4 KiB", "read 4 KiB, direct", "create and close"].iter().enumerate() {
        let of = |turn: &Vec<[f64; 3]>| {
            let mut us: Vec<f64> = turn.iter().map(|row| row[n]).collect();
            us.sort_by(f64::total_cmp);
            format!("{:.2} ({:.2} to {:.2})", us[us.len() / 2], us[0], us[us.len() - 1])
        };
        println!("{name:20} passed on {}, recorded {}", of(&all[0]), of(&all[1]));
    }
    Ok(())
}

/// us a call of each kind.
fn measured(folder: &Path, records: bool) -> Result<[f64; 3], Box<dyn Error>> {
    let host: Arc<dyn FileSystem> = Arc::new(HostFs::open(folder)?);
    let header = TraceHeader {
        format: FORMAT.into(),
        version: VERSION,
        source: TraceOrigin::Record,
        program: Vec::new(),
        trip: None,
        direct: false,
        names: NameForm::Kept,
        not_seen: Vec::new(),
    };
    let out = Box::new(tempfile::tempfile()?);
    let recorded = records.then(|| RecordedFs::new(Arc::clone(&host), out, header)).transpose()?;
    let recorded = recorded.map(Arc::new);
    let served = match &recorded {
        Some(recorded) => {
            recorded.begin(None);
            Arc::clone(recorded) as Arc<dyn FileSystem>
        }
        None => host,
    };
    let options = Options { threads: 4, uncached: true, ..Options::default() };
    let mut serving = FuseMount::new(served, folder, &options)?.serve_beside()?;
    let block = [7; 4096];
    let file = File::options().read(true).write(true).create_new(true).open(folder.join("f"))?;
    let timed = |call: &dyn Fn(usize) -> std::io::Result<()>| -> std::io::Result<f64> {
        let began = Instant::now();
        (0..CALLS).try_for_each(call)?;
        Ok(began.elapsed().as_secs_f64() * 1e6 / CALLS as f64)
    };
    let us = [
        timed(&|n| file.write_all_at(&block, n as u64 * 4096))?,
        timed(&|n| file.read_exact_at(&mut [0; 4096], n as u64 * 4096))?,
        timed(&|n| File::create(folder.join(format!("c{n}"))).map(drop))?,
    ];
    drop(file);
    serving.unmount()?;
    if let Some(recorded) = recorded {
        recorded.end(recorded.time(), None, false)?;
    }
    fs::read_dir(folder)?.next();
    Ok(us)
}
