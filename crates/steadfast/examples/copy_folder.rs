//! Copies a folder of this machine into an image, and says what came of it.
//!
//! ```sh
//! cargo run --example copy_folder -- FOLDER IMAGE
//! ```
//!
//! Without arguments it copies this program's own source into an image that it removes again.

// It is for people.
#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use steadfast::{FileSystem, Image};

/// What was copied.
#[derive(Debug, Default)]
struct Copied {
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
    let mut copied = Copied::default();
    into(&fs, folder, Path::new("/"), &mut copied)?;
    println!("{copied:?} to {}", image.display());
    Ok(fs.unmount()?)
}

fn into(fs: &FileSystem, from: &Path, to: &Path, copied: &mut Copied) -> io::Result<()> {
    for entry in from.read_dir()? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs.create_dir(&to)?;
            copied.folders += 1;
            into(fs, &from, &to, copied)?;
        } else if kind.is_file() {
            let mut file = fs.create(&to)?;
            copied.bytes += io::copy(&mut File::open(&from)?, &mut file)?;
            copied.files += 1;
        } else if kind.is_symlink() {
            fs.symlink(std::fs::read_link(&from)?, &to)?;
            copied.links += 1;
        }
        if !kind.is_symlink() && (kind.is_dir() || kind.is_file()) {
            fs.set_permissions(&to, from.metadata()?.permissions())?;
        }
    }
    Ok(())
}
