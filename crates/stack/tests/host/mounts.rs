//! Who asks a host to end gets it ended, or as it was.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use steadfast_stack::protocol::RefusalKind::Busy;
use steadfast_stack::protocol::{NewMount, Refusal, RefusalKind, Request};
use steadfast_stack::{MountedFs, Mounter, ToMount};
use steadfast_vfs::{FileSystem, OpenFlags};

use super::{Desk, occupant};

/// A mount of no file system. What is known of all of them is with their mounter.
struct Fake {
    at: PathBuf,
    options: String,
    ended: AtomicBool,
    all: Arc<Fakes>,
}

/// By the folder of each.
#[derive(Default)]
struct Fakes {
    /// How often it was mounted, and with which options last.
    mounted: Mutex<BTreeMap<PathBuf, (u32, String)>>,
    /// Where it is in use, and says so when it is asked.
    in_use: Mutex<Option<PathBuf>>,
    /// Where it comes into use just after that.
    comes_into_use: Mutex<Option<PathBuf>>,
}

struct Fakery(Arc<Fakes>);

impl Mounter for Fakery {
    fn mount(&self, what: &ToMount) -> Result<Arc<dyn MountedFs>, Refusal> {
        let mut mounted = self.0.mounted.lock().unwrap();
        let (count, options) = mounted.entry(what.at.clone()).or_default();
        *count += 1;
        options.clone_from(&what.options);
        Ok(Arc::new(Fake {
            at: what.at.clone(),
            options: format!("{},changed", what.options),
            ended: AtomicBool::new(false),
            all: Arc::clone(&self.0),
        }))
    }
}

impl MountedFs for Fake {
    fn unmount(&self, cut_off: bool) -> Result<(), Refusal> {
        let in_use = [&self.all.in_use, &self.all.comes_into_use];
        let here =
            |place: &&Mutex<Option<PathBuf>>| place.lock().unwrap().as_ref() == Some(&self.at);
        if !cut_off && in_use.iter().any(here) {
            return Err(Busy.because(format!("{}: in use", self.at.display())));
        }
        self.ended.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn check_unused(&self) -> Result<(), Refusal> {
        match self.all.in_use.lock().unwrap().as_ref() == Some(&self.at) {
            true => Err(Busy.because(format!("{}: in use", self.at.display()))),
            false => Ok(()),
        }
    }

    fn options(&self) -> String {
        self.options.clone()
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

const CONFIG: &str = "[mount.one]\nvolume = \"a\"\nat = \"/one\"\noptions = \"x\"\n";

#[test]
fn a_stop_that_is_refused_leaves_everything_mounted() {
    let fakes = Arc::new(Fakes::default());
    let mounter = Box::new(Fakery(Arc::clone(&fakes)));
    let desk = Desk::with(&["a", "b", "c"], CONFIG, occupant, mounter);
    for name in ["a", "b", "c"] {
        let at = Some(PathBuf::from("/").join(name));
        let new = NewMount { name: name.into(), at, options: name.into(), journal: None };
        desk.good(Request::Mount(new));
    }
    let counts =
        || -> Vec<(u32, String)> { fakes.mounted.lock().unwrap().values().cloned().collect() };
    let all_mounted = || {
        let status = desk.host.status();
        let there: Vec<&str> =
            status.mounts.iter().filter(|m| m.mounted).map(|m| m.name.as_str()).collect();
        assert_eq!(there, ["a", "b", "c"]);
        let options = status.mounts.iter().filter(|m| m.mounted).map(|m| m.options.as_str());
        assert!(options.eq(["a", "b", "c"]), "as they were asked for");
    };
    *fakes.in_use.lock().unwrap() = Some("/c".into());
    let refused = desk.ask(Request::Stop).unwrap_err();
    assert_eq!((refused.kind, refused.error.as_str()), (RefusalKind::Busy, "/c: in use"));
    all_mounted();
    let once = |options: &str| (1, options.to_owned());
    assert_eq!(counts(), [once("a"), once("b"), once("c")], "none was taken away");
    // What nobody has seen before: those that are away come back, as they were last.
    *fakes.in_use.lock().unwrap() = None;
    *fakes.comes_into_use.lock().unwrap() = Some("/c".into());
    let refused = desk.ask(Request::Stop).unwrap_err();
    assert_eq!(refused.error, "/c: in use");
    all_mounted();
    let again = |options: &str| (2, format!("{options},changed"));
    assert_eq!(counts(), [again("a"), again("b"), once("c")]);
    // The tree is as before, too.
    let refused = desk.open("a", OpenFlags::WRITE).unwrap_err();
    assert!(refused.to_string().contains("mounted"), "{refused}");
    desk.tree.release(desk.open("a", OpenFlags::READ).unwrap()).unwrap();
    *fakes.comes_into_use.lock().unwrap() = None;
    desk.good(Request::Stop);
    assert!(desk.host.status().mounts.iter().all(|m| !m.mounted));
    let refused = desk.open("a", OpenFlags::READ).unwrap_err();
    assert!(refused.to_string().contains("about to end"), "{refused}");
}
