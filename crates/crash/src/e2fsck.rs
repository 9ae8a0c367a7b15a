//! e2fsck, where it is installed: a second opinion on the recovered image (`-fn`), and what a
//! machine does at its start with a file system that has no journal (`-p`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use steadfast_devices::store::Store;

use crate::opinion::Opinion;

/// Bits of e2fsck(8)'s exit status that say nothing of the file system: 16 used wrongly, 32
/// cancelled, 128 no library. timeout(1)'s own troubles (124 to 127) and a kill (137) have some of
/// them.
const NO_ANSWER: i32 = 16 | 32 | 128;

/// Seconds after which e2fsck is killed: on some damaged images it hangs.
const LIMIT_SECONDS: &str = "60";

/// The images in their folder.
const DISK: &str = "disk";
const JOURNAL: &str = "journal";

/// An installed e2fsck.
pub struct E2fsck {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl E2fsck {
    /// Finds e2fsck and a folder for images; `None` if either is missing.
    pub fn find() -> Option<E2fsck> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&paths)
            .chain(["/sbin", "/usr/sbin"].map(PathBuf::from))
            .map(|p| p.join("e2fsck"))
            .find(|p| p.is_file())?;
        let folder = tempfile::tempdir().ok()?;
        Some(E2fsck { program, folder })
    }

    /// What it says of itself, in one line.
    pub fn version(&self) -> Option<String> {
        let mut command = Command::new(&self.program);
        let output = command.arg("-V").stdin(Stdio::null()).output().ok()?;
        let said = String::from_utf8_lossy(&output.stderr);
        said.lines().map(|line| line.trim().to_owned()).find(|line| !line.is_empty())
    }

    /// The repairs at boot that need nobody (`-p`), and what was on the disk after them; where they
    /// were not enough, what e2fsck said, and the disk after a person had said yes to everything.
    /// May be called by several threads at once.
    ///
    /// # Errors
    /// It could not be run, or did not end.
    pub(crate) fn at_boot(&self, disk: &Store) -> Result<(Store, Option<String>), String> {
        let bad = |e: std::io::Error| format!("an image for e2fsck: {e}");
        let folder = tempfile::tempdir_in(self.folder.path()).map_err(bad)?;
        let image = folder.path().join(DISK);
        disk.export(&image).map_err(bad)?;
        let answered = |how: &str| {
            let output = self.run(folder.path(), &[how.as_ref(), DISK.as_ref()])?;
            let code = output.status.code().filter(|code| code & NO_ANSWER == 0);
            let code =
                code.ok_or_else(|| format!("e2fsck {how} did not end: {}", output.status))?;
            Ok::<_, String>((code, output))
        };
        // 1 and 2: errors were corrected; 4 and more: left as they are.
        let person = match answered("-p")? {
            (0..4, _) => None,
            (_, output) => {
                answered("-fy")?;
                Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            }
        };
        Ok((Store::import(&image).map_err(bad)?, person))
    }

    /// In the folder of the images, whose names it prints: no state may have another one.
    fn run(&self, folder: &Path, words: &[&OsStr]) -> Result<Output, String> {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", LIMIT_SECONDS]).arg(&self.program).args(words);
        command.current_dir(folder);
        let output = command.stdin(Stdio::null()).output();
        output.map_err(|e| format!("e2fsck could not be run: {e}"))
    }

    /// What e2fsck says of a disk, and of its journal's device if it has one. May be called by
    /// several threads at once.
    pub fn judge(&self, disk: &Store, journal: Option<&Store>) -> Opinion {
        let put = |folder: &Path, name: &str, contents: &Store| {
            // What a used disk was full of e2fsck does not read.
            contents.without_tiles().export(&folder.join(name))
        };
        let images = tempfile::tempdir_in(self.folder.path()).and_then(|folder| {
            put(folder.path(), DISK, disk)?;
            journal.map(|journal| put(folder.path(), JOURNAL, journal)).transpose()?;
            Ok(folder)
        });
        match images {
            Ok(folder) => self.judge_images(folder.path(), DISK, journal.map(|_| JOURNAL)),
            Err(e) => Opinion::NotGiven(format!("cannot write an image for e2fsck: {e}")),
        }
    }

    /// The same of images in a folder.
    pub(crate) fn judge_images(
        &self,
        folder: &Path,
        image: &str,
        journal: Option<&str>,
    ) -> Opinion {
        let mut words: Vec<&OsStr> = vec!["-fn".as_ref()];
        words.extend(journal.iter().flat_map(|journal| ["-j".as_ref(), OsStr::new(*journal)]));
        words.push(image.as_ref());
        let output = match self.run(folder, &words) {
            Ok(output) => output,
            Err(why) => return Opinion::NotGiven(why),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = format!("{}: {} {}", output.status, text.trim(), errors.trim());
        match output.status.code() {
            Some(0) => Opinion::Clean,
            Some(code) if code & NO_ANSWER == 0 => Opinion::Damaged(said),
            _ => Opinion::NotGiven(format!("e2fsck did not end: {said}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a program in e2fsck's place.
    fn saying(script: &str) -> Opinion {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("e2fsck");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        E2fsck { program, folder }.judge(&Store::new(1 << 20), None)
    }

    #[test]
    fn what_keeps_e2fsck_from_answering_is_no_damage() {
        assert_eq!(saying("exit 0"), Opinion::Clean);
        assert!(saying("echo bad block; exit 4").damage().unwrap().contains("bad block"));
        assert!(saying("exit 8").damage().is_some(), "no superblock was found");
        for script in ["kill -9 $$", "exit 137", "exit 126"] {
            assert!(!saying(script).is_given(), "{script}");
        }
        // No room for the image: its folder is gone.
        let e2fsck = E2fsck { program: "true".into(), folder: tempfile::tempdir().unwrap() };
        std::fs::remove_dir(e2fsck.folder.path()).unwrap();
        let opinion = e2fsck.judge(&Store::new(1 << 20), None);
        assert!(opinion.missing().unwrap().contains("cannot write an image"), "{opinion:?}");
    }
}
