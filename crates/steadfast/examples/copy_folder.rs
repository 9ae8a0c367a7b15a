//! Copies a folder of this machine into an image, with all that belongs to it, and says what came
//! of it.
//!
//! ```sh
//! cargo run --example copy_folder -- FOLDER IMAGE
//! ```
//!
//! Without arguments it copies this program's own source into an image that it removes again.

// It is for people.
#![allow(clippy::print_stdout)]

use std::io;
use std::path::{Path, PathBuf};

use steadfast::{Image, tree};

/// What the image has.
#[derive(Debug, Default)]
struct Contents {
    folders: u64,
    files: u64,
    links: u64,
    bytes: u64,
}

/// See above.
pub fn main() -> io::Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if let [folder, image] = &arguments[..]
        && folder.is_dir()
    {
        return copy(folder, image);
    }
    let scratch = tempfile::tempdir()?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    copy(&own, &scratch.path().join("disk.img"))
}

fn copy(folder: &Path, image: &Path) -> io::Result<()> {
    let fs = Image::create(image).size(256 << 20).mount()?;
    // One file that cannot be read does not end it.
    let options = tree::Options::new().exclude(image).on_failure(|error| println!("{error}"));
    let report = options.on_note(|note| println!("note: {note}")).copy_in(&fs, folder, "/")?;

    let mut contents = Contents::default();
    let mut walk = fs.walk("/")?;
    while let Some(entry) = walk.next() {
        let entry = entry?;
        let about = entry.metadata();
        if entry.file_name() == "lost+found" {
            walk.skip_folder();
        } else if about.is_dir() {
            contents.folders += 1;
        } else if about.is_symlink() {
            contents.links += 1;
        } else {
            contents.files += 1;
            contents.bytes += about.len();
        }
    }
    println!("{contents:?} in {}; {} failures", image.display(), report.failures);
    Ok(fs.unmount()?)
}
