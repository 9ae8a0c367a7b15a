//! The state file of a stack host, in JSON: read, written and read again.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::path::PathBuf;
use std::sync::OnceLock;

use steadfast_stack::record::StateFile;

/// A folder in memory, for one process.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let made = || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        FOLDER.get_or_init(|| made().expect("a folder")).path().to_owned()
    })
}

pub fn run(input: &[u8]) {
    let config = folder().join("stack.toml");
    let file = StateFile::open(&config).expect("a folder of our own");
    std::fs::write(file.path(), input).expect("room in memory");
    match file.read() {
        Ok(records) => {
            for volume in &records.volumes {
                let uses = volume.uses().count();
                assert!(records.volume(&volume.name).is_some() && records.has(&volume.name));
                assert!(uses >= volume.components.len());
            }
            file.write(&records).expect("room in memory");
            let once = file.read().expect("what was written can be read");
            file.write(&once).expect("room in memory");
            assert_eq!(file.read().expect("what was written can be read"), once);
        }
        Err(refused) => assert!(!refused.error.contains(['\n', '\u{1b}'])),
    }
}

steadfast_fuzz::target!(run);
