//! The state file under faults: each step fails, or is the last before a power cut.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::*;

/// A file of the model.
#[derive(Debug, Clone, Default)]
struct Contents {
    now: Vec<u8>,
    /// What is durable of it.
    synced: Vec<u8>,
}

/// A file system of which a power cut keeps what was synced, and of the rest anything.
#[derive(Default)]
struct Model {
    files: RefCell<Vec<Contents>>,
    /// Names: what they stand for.
    names: RefCell<BTreeMap<PathBuf, usize>>,
    /// The names after each change since they were last synced, the synced ones first.
    kept: RefCell<Vec<BTreeMap<PathBuf, usize>>>,
    /// Steps that are still done; then the power is cut, or the disk is full.
    left: Cell<usize>,
}

impl Model {
    /// With a file that is durable.
    fn with(path: &Path, bytes: &[u8], steps: usize) -> Model {
        let model = Model::default();
        let contents = Contents { now: bytes.to_vec(), synced: bytes.to_vec() };
        model.files.borrow_mut().push(contents);
        model.names.borrow_mut().insert(path.to_path_buf(), 0);
        model.kept.borrow_mut().push(model.names.borrow().clone());
        model.left.set(steps);
        model
    }

    fn step(&self) -> io::Result<()> {
        match self.left.get() {
            0 => Err(io::ErrorKind::StorageFull.into()),
            left => {
                self.left.set(left - 1);
                Ok(())
            }
        }
    }

    fn named(&self, path: &Path) -> io::Result<usize> {
        self.names.borrow().get(path).copied().ok_or(io::ErrorKind::NotFound.into())
    }

    fn keep_names(&self) {
        self.kept.borrow_mut().push(self.names.borrow().clone());
    }

    /// Everything that can be under a name after a power cut: of the names any state since they
    /// were synced, of a file that was not synced a part, or as much with zeros in it.
    fn after_a_cut(&self, path: &Path) -> Vec<Option<Vec<u8>>> {
        let mut all = Vec::new();
        for names in self.kept.borrow().iter() {
            let Some(file) = names.get(path) else {
                all.push(None);
                continue;
            };
            let file = self.files.borrow()[*file].clone();
            all.push(Some(file.synced.clone()));
            if file.now != file.synced {
                all.push(Some(file.now.clone()));
                all.push(Some(file.now[..file.now.len() / 2].to_vec()));
                all.push(Some(vec![0; file.now.len()]));
            }
        }
        all
    }
}

impl Files for Model {
    fn create(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.files.borrow_mut().push(Contents::default());
        let file = self.files.borrow().len() - 1;
        self.names.borrow_mut().insert(path.to_path_buf(), file);
        self.keep_names();
        Ok(())
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.named(path)?;
        // A full disk takes a part.
        let done = self.step();
        let taken = if done.is_ok() { bytes.len() } else { bytes.len() / 2 };
        self.files.borrow_mut()[file].now.extend_from_slice(&bytes[..taken]);
        done
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let file = self.named(path)?;
        self.step()?;
        let mut files = self.files.borrow_mut();
        files[file].synced = files[file].now.clone();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.named(from)?;
        self.step()?;
        let mut names = self.names.borrow_mut();
        names.remove(from);
        names.insert(to.to_path_buf(), file);
        drop(names);
        self.keep_names();
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.step()?;
        *self.kept.borrow_mut() = vec![self.names.borrow().clone()];
        Ok(())
    }
}

/// A full disk, and a power cut, after each step: the old state or the new one, whole.
#[test]
fn a_cut_at_each_step_leaves_the_old_state_or_the_new_one() {
    let (path, new) = (Path::new("s/state.json"), Path::new("s/state.json.new"));
    let (mut old_seen, mut new_seen) = (0, 0);
    for steps in 0..=5 {
        let model = Model::with(path, b"the old state", steps);
        let done = prepare(&model, new, b"and the new one, longer").and_then(|()| {
            let still = model.after_a_cut(path);
            assert!(still.iter().all(|s| s.as_deref() == Some(b"the old state")), "{still:?}");
            commit(&model, new, path)
        });
        assert_eq!(done.is_ok(), steps == 5, "{steps} steps");
        for state in model.after_a_cut(path) {
            match state.as_deref() {
                Some(b"the old state") if done.is_err() => old_seen += 1,
                Some(b"and the new one, longer") => new_seen += 1,
                other => panic!("after {steps} steps: {other:?}"),
            }
        }
    }
    assert!(old_seen > 4 && new_seen > 1, "{old_seen} {new_seen}");
}

/// The test sees what it is for: without the flush before the renaming a power cut leaves neither.
#[test]
fn without_the_flush_a_cut_leaves_neither() {
    let (path, new) = (Path::new("s/state.json"), Path::new("s/state.json.new"));
    let model = Model::with(path, b"old", 100);
    model.create(new).unwrap();
    model.append(new, b"new").unwrap();
    commit(&model, new, path).unwrap();
    let is_whole = |s: &Option<Vec<u8>>| matches!(s.as_deref(), Some(b"old" | b"new"));
    assert!(!model.after_a_cut(path).iter().all(is_whole));
}

#[test]
fn what_was_written_is_read_and_one_host_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("stack.toml");
    let file = StateFile::open(&config).unwrap();
    assert_eq!(file.read().unwrap(), Records::default());
    let mut records = Records::default();
    records.ramdisks.insert("r0".into(), 1 << 20);
    file.write(&records).unwrap();
    assert_eq!(file.read().unwrap().ramdisks, records.ramdisks);
    assert_eq!(StateFile::open(&config).unwrap_err().kind, Busy);
    drop(file);
    StateFile::open(&config).unwrap();
}

#[test]
fn damage_and_newer_versions_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("stack.toml");
    let file = StateFile::open(&config).unwrap();
    std::fs::write(file.path(), "{\"version\": 2}").unwrap();
    assert_eq!(file.read().unwrap_err().kind, Unsupported);
    std::fs::write(file.path(), "{").unwrap();
    assert!(file.read().unwrap_err().error.contains("is damaged"));
}
