//! A package for Debian: the program, its manual pages, completions, helpers of mount(8) and
//! systemd's units. `dpkg-deb` puts it together; nothing else is asked for.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::step;

/// Scripts of the package: dpkg runs them.
const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("../../dist/debian/postinst")),
    ("prerm", include_str!("../../dist/debian/prerm")),
    ("postrm", include_str!("../../dist/debian/postrm")),
];
const COPYRIGHT: &str = include_str!("../../dist/debian/copyright");
/// What dpkg-shlibdeps must find.
const SOURCE_CONTROL: &str = "Source: steadfast\n\nPackage: steadfast\nArchitecture: any\n";
/// Where the units say that the program is, and where it is in the package.
const UNPACKAGED: &str = "/usr/local/bin/steadfast";
const PROGRAM: &str = "/usr/bin/steadfast";
/// The package's own part of the version.
const REVISION: u32 = 1;
const MAINTAINER: &str = "The Steadfast authors <authors@steadfast.invalid>";
/// Names by which mount(8) and umount(8) call the program, and the manual page of each.
const HELPERS: [(&str, &str); 4] = [
    ("mount.steadfast", "steadfast-mount"),
    ("mount.fuse.steadfast", "steadfast-mount"),
    ("umount.steadfast", "steadfast-umount"),
    ("umount.fuse.steadfast", "steadfast-umount"),
];

/// Documents: folders of the repository, where they are in the package's own, and their ending.
const EVERYTHING: [(&str, &str, &str); 5] = [
    ("docs", "docs", "md"),
    ("docs/internals", "docs/internals", "md"),
    ("docs/images", "docs/images", "svg"),
    ("crates/lab/scenarios", "scenarios", "toml"),
    ("crates/lab/parts", "parts", "toml"),
];

/// What is to be made.
struct DebOptions {
    program: Option<PathBuf>,
    folder: PathBuf,
}

/// `cargo xtask deb`.
pub fn run(root: &Path, rest: &[String]) -> Result<bool> {
    let mut wanted = DebOptions { program: None, folder: root.join("target/debian") };
    let mut rest = rest.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--program" => wanted.program = Some(super::value(option, &mut rest)?.into()),
            "--folder" => wanted.folder = super::value(option, &mut rest)?.into(),
            other => anyhow::bail!("unexpected argument '{other}'; see cargo xtask help"),
        }
    }
    let (program, packing) = match wanted.program {
        Some(program) => (program, Packing::Quick),
        None => {
            let built =
                step::run(&mut step::cargo(root, &["build", "--release", "-p", "steadfast"]))?;
            ensure!(built, "the program was not built");
            (root.join("target/release/steadfast"), Packing::Small)
        }
    };
    let package = make(root, &program, &wanted.folder, packing)?;
    println!("{}", package.display());
    Ok(true)
}

/// How hard the package is pressed.
#[derive(Debug, Clone, Copy)]
pub enum Packing {
    /// To be handed out.
    Small,
    /// To be tried.
    Quick,
}

/// Makes the package of a program in a folder; where it is.
pub fn make(root: &Path, program: &Path, folder: &Path, packing: Packing) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    // Beside it, so that nothing of an earlier package is in this one.
    let tree = folder.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let package = Package { root, tree };
    package.program(program)?;
    package.pages(program)?;
    package.completions(program)?;
    package.helpers()?;
    package.units()?;
    let version = said(Command::new(program).arg("--version"))?;
    let version = version.split_whitespace().last().context("no version")?;
    let version = format!("{version}-{REVISION}");
    let machine = said(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
    package.documents(&version)?;
    package.control(&version, &machine)?;
    let file = folder.join(format!("steadfast_{version}_{machine}.deb"));
    said(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", packing.level(), "--build"])
            .args([&package.tree, &file]),
    )?;
    fs::remove_dir_all(&package.tree)?;
    Ok(file)
}

impl Packing {
    fn level(self) -> &'static str {
        match self {
            Packing::Small => "-z6",
            Packing::Quick => "-z0",
        }
    }
}

/// The tree of files that becomes the package.
struct Package<'a> {
    root: &'a Path,
    tree: PathBuf,
}

impl Package<'_> {
    /// A file of the package; its folders are made.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let path = self.tree.join(path.trim_start_matches('/'));
        let folder = path.parent().context("a path of the package")?;
        let mut made = self.tree.clone();
        fs::create_dir_all(folder)?;
        // Whatever the umask is.
        for part in folder.strip_prefix(&self.tree)?.components() {
            made.push(part);
            fs::set_permissions(&made, fs::Permissions::from_mode(0o755))?;
        }
        fs::set_permissions(&self.tree, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>, mode: u32) -> Result<()> {
        let path = self.place(path)?;
        fs::write(&path, text)?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(mode))?)
    }

    /// A text, compressed without what differs from one run to the next.
    fn compressed(&self, path: &str, text: impl AsRef<[u8]>) -> Result<()> {
        self.write(path, text, 0o644)?;
        said(Command::new("gzip").args(["-9", "-n", "-f"]).arg(self.place(path)?)).map(drop)
    }

    fn program(&self, program: &Path) -> Result<()> {
        let path = self.place(PROGRAM)?;
        let strip =
            ["--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", "-o"];
        said(Command::new("strip").args(strip).arg(&path).arg(program))?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
    }

    fn pages(&self, program: &Path) -> Result<()> {
        let pages = self.place("usr/share/man/man1/page")?;
        let pages = pages.parent().context("the folder of pages")?;
        said(Command::new(program).arg("man").arg(pages))?;
        for entry in fs::read_dir(pages)? {
            let path = entry?.path();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
            said(Command::new("gzip").args(["-9", "-n", "-f"]).arg(&path))?;
        }
        for (name, page) in HELPERS {
            let link = self.place(&format!("usr/share/man/man8/{name}.8.gz"))?;
            symlink(format!("../man1/{page}.1.gz"), link)?;
        }
        Ok(())
    }

    fn completions(&self, program: &Path) -> Result<()> {
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/steadfast"),
            ("zsh", "usr/share/zsh/vendor-completions/_steadfast"),
            ("fish", "usr/share/fish/vendor_completions.d/steadfast.fish"),
        ] {
            let text = said(Command::new(program).args(["completions", shell]))?;
            self.write(path, text, 0o644)?;
        }
        Ok(())
    }

    fn helpers(&self) -> Result<()> {
        for (name, _) in HELPERS {
            symlink("../bin/steadfast", self.place(&format!("usr/sbin/{name}"))?)?;
        }
        Ok(())
    }

    fn units(&self) -> Result<()> {
        for name in ["steadfast.service", "steadfast@.service"] {
            let unit = fs::read_to_string(self.root.join("dist").join(name))?;
            ensure!(unit.contains(UNPACKAGED), "{name} does not start {UNPACKAGED}");
            // What it says of installing is done.
            let lines = unit.lines().filter(|line| !line.starts_with("# Install:"));
            let unit = lines.fold(String::new(), |text, line| text + line + "\n");
            let unit = unit.replace(UNPACKAGED, PROGRAM);
            self.write(&format!("usr/lib/systemd/system/{name}"), unit, 0o644)?;
        }
        Ok(())
    }

    fn documents(&self, version: &str) -> Result<()> {
        let folder = "usr/share/doc/steadfast";
        let license = fs::read_to_string(self.root.join("LICENSE-MIT"))?;
        self.write(&format!("{folder}/copyright"), copyright(&license), 0o644)?;
        let changes = fs::read_to_string(self.root.join("CHANGELOG.md"))?;
        self.compressed(&format!("{folder}/changelog"), changes)?;
        let readme = fs::read_to_string(self.root.join("README.md"))?;
        self.write(&format!("{folder}/README.md"), readme, 0o644)?;
        for (from, to, ending) in EVERYTHING {
            for entry in fs::read_dir(self.root.join(from))? {
                let path = entry?.path();
                let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                if path.extension() == Some(OsStr::new(ending)) {
                    let text = fs::read(&path)?;
                    self.write(&format!("{folder}/{to}/{name}"), text, 0o644)?;
                }
            }
        }
        let day = said(Command::new("date").env("LC_ALL", "C").arg("-R"))?;
        let changes = format!(
            "steadfast ({version}) unstable; urgency=medium\n\n  * Built by cargo xtask deb.\n\n \
             -- {MAINTAINER}  {day}"
        );
        self.compressed(&format!("{folder}/changelog.Debian"), changes)
    }

    fn control(&self, version: &str, machine: &str) -> Result<()> {
        let kib = installed_kib(&self.tree)?;
        let depends = self.depends()?;
        let control = format!(
            "Package: steadfast\n\
             Version: {version}\n\
             Architecture: {machine}\n\
             Maintainer: {MAINTAINER}\n\
             Section: admin\n\
             Priority: optional\n\
             Installed-Size: {kib}\n\
             Depends: {depends}\n\
             Recommends: fuse3\n\
             Suggests: e2fsprogs\n\
             Description: ext4 in user space, measured under power failure\n \
             A storage stack in user space: ext2, ext3 and ext4 with full journaling on\n \
             internal and external journals, mirrors with a leg in memory, and files used\n \
             in place on memory. It mounts by FUSE, runs on image files, devices and\n \
             models of devices, and measures what a set-up gains in speed and what a\n \
             power failure takes from it.\n"
        );
        self.write("DEBIAN/control", control, 0o644)?;
        for (name, text) in SCRIPTS {
            self.write(&format!("DEBIAN/{name}"), text, 0o755)?;
        }
        let sums = said(
            Command::new("sh")
                .current_dir(&self.tree)
                .args(["-c", "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum"]),
        )?;
        self.write("DEBIAN/md5sums", sums, 0o644)
    }

    /// What the program needs, as dpkg-shlibdeps finds it.
    fn depends(&self) -> Result<String> {
        let source = tempdir_beside(&self.tree)?;
        fs::create_dir_all(source.join("debian"))?;
        fs::write(source.join("debian/control"), SOURCE_CONTROL)?;
        let program = self.place(PROGRAM)?;
        let found =
            said(Command::new("dpkg-shlibdeps").current_dir(&source).arg("-O").arg(&program));
        fs::remove_dir_all(&source)?;
        let found = found.context("dpkg-shlibdeps (package dpkg-dev)")?;
        let line = found.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
        Ok(line.context("dpkg-shlibdeps names no library")?.to_owned())
    }
}

fn tempdir_beside(tree: &Path) -> Result<PathBuf> {
    let path = tree.with_extension("source");
    fs::create_dir_all(&path)?;
    Ok(path)
}

/// Debian's form of the licences: of two, one of which is on every Debian machine.
fn copyright(mit: &str) -> String {
    let text = mit.lines().skip_while(|line| !line.starts_with("Permission"));
    let text: String = text
        .map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
        .collect();
    format!("{COPYRIGHT}License: MIT\n{text}")
}

/// KiB of all files, as dpkg counts them.
fn installed_kib(folder: &Path) -> Result<u64> {
    let mut all = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.path().symlink_metadata()?;
        all += match meta.is_dir() {
            true => 1 + installed_kib(&entry.path())?,
            false => meta.len().div_ceil(1024).max(1),
        };
    }
    Ok(all)
}

/// What a command that must succeed prints.
fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_owned();
    let out = command.output().with_context(|| format!("cannot run {}", shown(&name)))?;
    let errors = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{}: {}", shown(&name), errors.trim());
    Ok(String::from_utf8(out.stdout)?)
}

fn shown(name: &OsStr) -> String {
    Path::new(name).display().to_string()
}

#[cfg(test)]
#[path = "deb/tests.rs"]
mod tests;
