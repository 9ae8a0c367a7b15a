use std::collections::BTreeSet;
use std::process::Output;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::*;

/// A folder with the package of the debug program, and a root to install it in: with a database of
/// packages of its own, so that nothing of this machine is touched.
struct Desk {
    folder: tempfile::TempDir,
    package: Arc<Made>,
}

/// A package in a folder that goes with the last test that has it.
struct Made {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// The package: tests that run at the same time share one.
fn package() -> Arc<Made> {
    static LAST: Mutex<Weak<Made>> = Mutex::new(Weak::new());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = last.upgrade() {
        return made;
    }
    let root = crate::root();
    let program = root.join("target/debug/steadfast");
    if !program.exists() {
        assert!(step::run(&mut step::cargo(&root, &["build", "-p", "steadfast"])).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = make(&root, &program, folder.path(), Packing::Quick).unwrap();
    let made = Arc::new(Made { _folder: folder, path });
    *last = Arc::downgrade(&made);
    made
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk { folder: tempfile::tempdir().unwrap(), package: package() };
        for path in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"] {
            fs::create_dir_all(desk.root().join(path)).unwrap();
        }
        fs::write(desk.root().join("var/lib/dpkg/status"), "").unwrap();
        desk
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// dpkg in that root; scripts run outside of it, and know by DPKG_ROOT that they do.
    fn dpkg(&self, action: &str, what: impl AsRef<OsStr>) -> Output {
        let root = format!("--root={}", self.root().display());
        let dpkg = ["--force-script-chrootless", "--force-depends", "--force-not-root", &root];
        Command::new("dpkg").args(dpkg).arg(action).arg(what).output().unwrap()
    }

    fn program(&self) -> PathBuf {
        self.root().join("usr/bin/steadfast")
    }

    fn run(&self, program: &Path, line: &str) -> String {
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).current_dir(self.folder.path());
        said(command.env("STEADFAST_RUNTIME_DIR", self.folder.path().join("run"))).unwrap()
    }

    /// All files below the root that are not dpkg's own.
    fn files(&self) -> BTreeSet<String> {
        let find = Command::new("find").arg(".").current_dir(self.root()).output().unwrap();
        let all = String::from_utf8(find.stdout).unwrap();
        let own = |line: &&str| !line.starts_with("./var") && *line != ".";
        all.lines().filter(own).map(str::to_owned).collect()
    }
}

fn good(out: &Output) {
    let (said, errors) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}{errors}");
}

#[test]
fn the_package_is_installed_used_and_removed() {
    let desk = Desk::new();
    good(&desk.dpkg("--install", &desk.package.path));
    let files = desk.files();
    for path in [
        "./usr/bin/steadfast",
        "./usr/sbin/mount.steadfast",
        "./usr/sbin/umount.fuse.steadfast",
        "./usr/share/man/man1/steadfast-mount.1.gz",
        "./usr/share/man/man8/mount.steadfast.8.gz",
        "./usr/share/bash-completion/completions/steadfast",
        "./usr/share/zsh/vendor-completions/_steadfast",
        "./usr/share/fish/vendor_completions.d/steadfast.fish",
        "./usr/lib/systemd/system/steadfast.service",
        "./usr/lib/systemd/system/steadfast@.service",
        "./usr/share/doc/steadfast/copyright",
    ] {
        assert!(files.contains(path), "{path}: {files:#?}");
    }
    // It works from there, and by the helper's name.
    let program = desk.program();
    desk.run(&program, "mkfs -q disk.img --size 16m");
    assert!(desk.run(&program, "check disk.img").contains("clean"));
    if rustix::process::geteuid().is_root() && fs::File::open("/dev/fuse").is_ok() {
        let at = desk.folder.path().join("m");
        fs::create_dir(&at).unwrap();
        let helper = |name: &str| desk.root().join("usr/sbin").join(name);
        desk.run(&helper("mount.steadfast"), "disk.img m -o noatime");
        fs::write(at.join("file"), "kept").unwrap();
        desk.run(&helper("umount.steadfast"), "m");
        assert_eq!(desk.run(&program, "cat disk.img /file"), "kept");
    } else {
        println!("SKIPPED: a mount needs root and /dev/fuse");
    }
    let pages = desk.root().join("usr/share/man");
    let page = said(Command::new("man").arg("-M").arg(&pages).args(["8", "mount.steadfast"]));
    assert!(page.unwrap().contains("IMAGE_OR_DEVICE"));
    let completions = desk.root().join("usr/share/bash-completion/completions/steadfast");
    said(Command::new("bash").arg("-n").arg(completions)).unwrap();
    good(&desk.dpkg("--purge", "steadfast"));
    let left = desk.files();
    assert!(left.is_empty(), "{left:#?}");
}

/// The units start what the package has, and systemd takes them.
#[test]
fn systemd_takes_the_units_of_the_package() {
    let desk = Desk::new();
    good(&desk.dpkg("--install", &desk.package.path));
    let units = desk.root().join("usr/lib/systemd/system");
    for (name, instance) in
        [("steadfast.service", "steadfast.service"), ("steadfast@.service", "steadfast@a.service")]
    {
        let unit = fs::read_to_string(units.join(name)).unwrap();
        assert!(unit.contains("ExecStart=/usr/bin/steadfast serve --foreground"), "{unit}");
        assert!(!unit.contains("/usr/local"), "{unit}");
        let program = desk.program();
        let unit = unit.replace(PROGRAM, program.to_str().unwrap());
        let unit: String = unit
            .lines()
            .filter(|line| !line.starts_with("Documentation="))
            .map(|line| format!("{line}\n"))
            .collect();
        let path = desk.folder.path().join(instance);
        fs::write(&path, unit).unwrap();
        let out = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && errors.is_empty(), "{errors}");
    }
}

/// What the package says of itself.
#[test]
fn the_package_names_what_it_needs() {
    let desk = Desk::new();
    let field = |name: &str| {
        let mut command = Command::new("dpkg-deb");
        said(command.arg("--field").arg(&desk.package.path).arg(name)).unwrap().trim().to_owned()
    };
    assert_eq!(field("Package"), "steadfast");
    assert!(field("Depends").contains("libc6 (>= "), "{}", field("Depends"));
    assert!(field("Installed-Size").parse::<u64>().unwrap() > 1000);
    let list = said(Command::new("dpkg-deb").arg("--contents").arg(&desk.package.path)).unwrap();
    let foreign: Vec<&str> = list.lines().filter(|line| !line.contains(" root/root ")).collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
    let writable: Vec<&str> =
        list.lines().filter(|line| !line.starts_with('l') && line.get(5..6) == Some("w")).collect();
    assert!(writable.is_empty(), "{writable:#?}");
}
