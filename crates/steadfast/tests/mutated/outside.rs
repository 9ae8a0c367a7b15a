//! A folder for one case: the image, where its files are copied to, and what must stay as it is.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The folder of one case.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    pub fn new(image: &[u8]) -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        for folder in ["m", "run", "around/outside"] {
            fs::create_dir_all(bench.path(folder)).unwrap();
        }
        fs::write(bench.path("around/victim"), "untouched").unwrap();
        fs::write(bench.path("around/outside/file"), "untouched").unwrap();
        fs::write(bench.path("source"), vec![b's'; 9000]).unwrap();
        write_sparse(&bench.path("image"), image);
        bench
    }

    pub fn at(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The image as it was at the beginning, under another name.
    pub fn copy(&self, name: &str) {
        let image = fs::read(self.path("image")).unwrap();
        write_sparse(&self.path(name), &image);
    }

    /// What is around the copy's folder and has changed.
    pub fn changed_outside(&self) -> Option<String> {
        let mut seen = Vec::new();
        list(&self.path("around"), &mut seen);
        seen.retain(|(path, _)| !path.starts_with(self.path("around/copy")));
        seen.sort();
        let untouched = |p: &str| (self.path(p), b"untouched".to_vec());
        let expected = vec![
            (self.path("around/outside"), Vec::new()),
            untouched("around/outside/file"),
            untouched("around/victim"),
        ];
        (seen != expected).then(|| format!("outside of the copy: {seen:?}"))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let mounted = || {
            let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            table.contains(&format!(" {} ", self.path("m").display()))
        };
        if mounted() {
            let _ = rustix::mount::unmount(self.path("m"), rustix::mount::UnmountFlags::DETACH);
        }
    }
}

/// Everything below, links not followed; folders have no contents here.
fn list(folder: &Path, seen: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        let path = entry.path();
        if kind.is_dir() {
            seen.push((path.clone(), Vec::new()));
            if entry.file_name() != "copy" {
                list(&path, seen);
            }
        } else if kind.is_file() {
            let contents = fs::read(&path).unwrap();
            seen.push((path, contents));
        } else {
            seen.push((path, b"neither file nor folder".to_vec()));
        }
    }
}

fn write_sparse(path: &Path, image: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(path).unwrap();
    file.set_len(image.len() as u64).unwrap();
    for (i, piece) in image.chunks(4096).enumerate() {
        // As one comparison: byte by byte, without optimisation, it took a third of these tests.
        if piece != &[0; 4096][..piece.len()] {
            file.write_all_at(piece, i as u64 * 4096).unwrap();
        }
    }
}
