//! Sweeps as a person runs them: by hand, by GNU parallel, by a Slurm of which a node is lost. What
//! is merged is what one machine prints, byte for byte.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

#[path = "sweep/by_hand.rs"]
mod by_hand;
#[path = "sweep/cluster.rs"]
mod cluster;
#[path = "sweep/engines.rs"]
mod engines;
#[path = "sweep/recording.rs"]
mod recording;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use steadfast_host::Folder;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(300);

/// A scenario whose cases take some hundredths of a second.
const SCENARIO: &str = r#"version = 2
name = "small"
title = "A small disk, its journal inside and on a card"

[workload]
iozone = "-M -o -c -e -t1 -T -I -s 256k -r 16k -i0"
quick_size = "256k"
risk_size = "128k"
cuts = 4

[device.disk]
kind = "ssd"
sectors = 131072
write_cache = "volatile"

[device.card]
kind = "nvram"
size_mib = 16

[[variant]]
name = "internal"
label = "journal on the same disk"
disk = "disk"
mount = "data=ordered"

[[variant]]
name = "external"
label = "journal on the card"
disk = "disk"
journal = "card"
mount = "data=ordered"
"#;

/// A folder with a scenario, a SWEEP.toml of so many seeds, and no environment of any engine.
struct Desk {
    folder: Folder,
    seeds: u64,
}

impl Desk {
    /// Each seed is four cases.
    fn new(seeds: u64) -> Desk {
        let folder = Folder::new("steadfast-test-").unwrap();
        fs::write(folder.path().join("small.toml"), SCENARIO).unwrap();
        let sweep = format!("[lab-run]\nscenario = \"small.toml\"\nseeds = {seeds}\n");
        fs::write(folder.path().join("SWEEP.toml"), sweep).unwrap();
        Desk { folder, seeds }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(self.path());
        for name in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "HQ_TASK_ID", "PARALLEL_SEQ"] {
            command.env_remove(name);
        }
        for name in ["CI_NODE_INDEX", "TEST_SHARD_INDEX", "TEST_SHARD_STATUS_FILE"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, line: &str) -> Output {
        steadfast_suite::output(LIMIT, &mut self.command(line)).unwrap()
    }

    /// Runs a command that must succeed; its standard output.
    fn good(&self, line: &str) -> String {
        good(line, self.run(line))
    }

    /// Runs a command that must end with this status; what it says on the standard error.
    fn bad(&self, line: &str, status: i32) -> String {
        let out = self.run(line);
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(status), "{line}\n{text}");
        text
    }

    fn plan(&self, shards: u32) {
        let plan = self.good(&format!("sweep plan SWEEP.toml --shards {shards}"));
        fs::write(self.path().join("plan.json"), plan).unwrap();
    }

    /// What one machine prints.
    fn one_machine(&self, more: &str) -> String {
        self.good(&format!("lab run small.toml --seeds {} {more}", self.seeds))
    }
}

fn good(line: &str, out: Output) -> String {
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{line}: {:?}\n{errors}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

/// Where a program is; those of the administrator too.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
    path.split(':').map(|folder| Path::new(folder).join(program)).find(|path| path.is_file())
}
