//! What a program of the gallery needs: by apt on the system, all else in target/gallery.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::program::GalleryProgram;
use crate::{packages, step};

/// Where a program is installed, and its environment.
pub struct ProgramPlace {
    /// The program's folder, with its scripts.
    scripts: PathBuf,
    /// What was installed; recordings are made here.
    pub folder: PathBuf,
    /// The library whose syncs do nothing.
    pub without_sync: PathBuf,
    /// Where the interpreter of Python is, if not on the path: what is there can be a script that
    /// looks for it, which takes longer than most judges.
    python: Option<PathBuf>,
}

impl ProgramPlace {
    /// A command with the program's paths, in its place.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.folder.join("bin");
        let python = self.python.as_ref().map(|folder| format!("{}:", folder.display()));
        let (python, system) = (python.unwrap_or_default(), "/usr/local/sbin:/usr/sbin:/sbin");
        command.env("PATH", format!("{}:{python}{path}:{system}", bin.display()));
        let shared = self.scripts.parent().unwrap_or(&self.scripts);
        let python = self.folder.join("python");
        command.env("PYTHONPATH", format!("{}:{}", python.display(), shared.display()));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("NODE_PATH", self.folder.join("node_modules"));
        command.env("GALLERY", &self.scripts).current_dir(&self.folder);
        command
    }

    /// The same for a line of the shell.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", line]);
        command
    }
}

/// Installs what is missing.
pub fn install(root: &Path, program: &GalleryProgram) -> anyhow::Result<ProgramPlace> {
    let gallery = root.join("target/gallery");
    let mut place = ProgramPlace {
        scripts: root.join(super::FOLDER).join(&program.folder),
        folder: gallery.join(&program.folder),
        without_sync: gallery.join("without_sync.so"),
        python: None,
    };
    std::fs::create_dir_all(place.folder.join("bin"))
        .with_context(|| place.folder.display().to_string())?;
    let from = &program.install;
    let mut needed = vec![("cc", "gcc"), ("python3", "python3")];
    needed.extend(from.apt.iter().map(|(command, package)| (command.as_str(), package.as_str())));
    needed.extend((!from.pip.is_empty()).then_some(("pip3", "python3-pip")));
    needed.extend((!from.npm.is_empty()).then_some(("npm", "npm")));
    needed.extend(from.go.then_some(("go", "golang-go")));
    ensure!(packages::install_these(&needed)?, "a package is missing");
    place.python = interpreter()?;
    let source = root.join(super::FOLDER).join("without_sync.c");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", "-O2", "-shared", "-fPIC", "-o"]).arg(&place.without_sync);
    done(cc.arg(source).arg("-ldl"))?;
    if !from.pip.is_empty() && is_new(&place, "python", &from.pip)? {
        let mut pip = packages::command("pip3");
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--upgrade", "--target"]);
        pip.arg("python").args(&from.pip).env("PIP_ROOT_USER_ACTION", "ignore");
        done(pip.current_dir(&place.folder))?;
    }
    if !from.npm.is_empty() && is_new(&place, "node_modules", &from.npm)? {
        let mut npm = packages::command("npm");
        npm.args(["install", "--silent", "--no-save", "--prefix", "."]).args(&from.npm);
        done(npm.current_dir(&place.folder))?;
    }
    let driver = place.folder.join("bin/driver");
    if from.go {
        let mut go = packages::command("go");
        go.args(["build", "-trimpath", "-o"]).arg(&driver).arg(".");
        done(go.current_dir(&place.scripts))?;
    }
    if from.cargo {
        let target = gallery.join("cargo");
        let mut cargo = step::cargo(&place.scripts, &["build", "--quiet", "--release", "--locked"]);
        done(cargo.env("CARGO_TARGET_DIR", &target))?;
        let built = target.join("release").join(format!("gallery-{}", program.folder));
        std::fs::copy(&built, &driver).with_context(|| built.display().to_string())?;
    }
    Ok(place)
}

/// The folder of Python's interpreter, if it is not on the path.
fn interpreter() -> anyhow::Result<Option<PathBuf>> {
    let mut python = Command::new("python3");
    let out =
        python.args(["-c", "import sys; print(sys.executable)"]).output().context("python3")?;
    let program = String::from_utf8_lossy(&out.stdout).into_owned();
    let folder = Path::new(program.trim()).parent().filter(|folder| folder.is_dir());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_on_path = |folder: &&Path| std::env::split_paths(&path).any(|of| of == *folder);
    Ok(folder.filter(|folder| !is_on_path(folder)).map(Path::to_owned))
}

/// Whether these packages are not what is installed; notes that they are.
fn is_new(place: &ProgramPlace, kind: &str, packages: &[String]) -> anyhow::Result<bool> {
    let (note, wanted) = (place.folder.join(format!("{kind}.txt")), packages.join("\n"));
    let there = place.folder.join(kind).is_dir()
        && std::fs::read_to_string(&note).is_ok_and(|had| had == wanted);
    std::fs::write(&note, wanted).with_context(|| note.display().to_string())?;
    Ok(!there)
}

fn done(command: &mut Command) -> anyhow::Result<()> {
    ensure!(step::run(command)?, "{command:?} failed");
    Ok(())
}
