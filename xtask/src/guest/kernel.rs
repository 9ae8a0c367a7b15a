//! Debian's kernel package: fetched once, and unpacked into a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::step;

/// The package that depends on the newest kernel's.
const META: &str = "linux-image-amd64";

/// A kernel that a guest can boot.
pub struct GuestKernel {
    /// Its release: "6.1.0-56-amd64".
    pub release: String,
    /// What QEMU loads.
    pub image: PathBuf,
    /// Where `lib/modules` is.
    pub folder: PathBuf,
}

/// The newest kernel of the distribution, from `folder` if it is there.
pub fn fetch(folder: &Path) -> anyhow::Result<GuestKernel> {
    let package = newest()?;
    let release = package.trim_start_matches("linux-image-").to_owned();
    let unpacked = folder.join(&release);
    let image = unpacked.join("boot").join(format!("vmlinuz-{release}"));
    let kernel = GuestKernel { release, image, folder: unpacked };
    // It is written last.
    let whole = kernel.folder.join("lib/modules").join(&kernel.release).join("modules.dep.bin");
    if whole.is_file() && kernel.image.is_file() {
        return Ok(kernel);
    }
    println!("    fetching {package}");
    let mut download = Command::new("apt-get");
    // Root's folders are closed to the user that apt would fetch as.
    download.current_dir(folder).args(["-qq", "-o", "APT::Sandbox::User=root", "download"]);
    let fetched = step::run(download.arg(&package))?;
    anyhow::ensure!(fetched, "apt-get cannot download {package}; is there a network?");
    let archive = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| is_archive(path, &package))
        .with_context(|| format!("apt-get left no archive of {package}"))?;
    let mut unpack = Command::new("dpkg-deb");
    anyhow::ensure!(
        step::run(unpack.arg("-x").arg(&archive).arg(&kernel.folder))?,
        "{} cannot be unpacked",
        archive.display()
    );
    std::fs::remove_file(&archive)?;
    let mut depmod = crate::packages::command("depmod");
    anyhow::ensure!(
        step::run(depmod.arg("-b").arg(&kernel.folder).arg(&kernel.release))?,
        "depmod has failed"
    );
    Ok(kernel)
}

fn is_archive(path: &Path, package: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(&format!("{package}_")) && name.ends_with(".deb")
}

fn newest() -> anyhow::Result<String> {
    let output = Command::new("apt-cache").args(["depends", META]).output();
    let output = output.context("the guest's kernel is a Debian package: apt-cache is needed")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    found.map(str::to_owned).with_context(|| {
        format!("apt knows no package {META}; as root: apt-get update (of Debian, on amd64)")
    })
}

impl GuestKernel {
    /// The files of a module and of all that it needs, in the order in which they are inserted.
    pub fn files_of(&self, module: &str) -> anyhow::Result<Vec<PathBuf>> {
        let mut modprobe = crate::packages::command("modprobe");
        // Not with the parameters that this machine gives its own.
        let output = modprobe
            .args(["-C", "/dev/null", "-d"])
            .arg(&self.folder)
            .args(["-S", &self.release, "--show-depends", module])
            .output()?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::ensure!(output.status.success(), "module {module}: {}", error.trim());
        Ok(inserted(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// What `modprobe --show-depends` would insert.
fn inserted(text: &str) -> Vec<PathBuf> {
    let files = text.lines().filter_map(|line| line.trim().strip_prefix("insmod "));
    files.filter_map(|file| file.split_whitespace().next()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_after_what_they_need() {
        let text = "builtin ext4\ninsmod /m/md-mod.ko start_ro=1 \ninsmod /m/raid1.ko \n";
        assert_eq!(inserted(text), [PathBuf::from("/m/md-mod.ko"), PathBuf::from("/m/raid1.ko")]);
        assert!(inserted("builtin loop\n").is_empty());
    }

    #[test]
    fn the_archive_is_that_of_the_package() {
        let is = |name: &str| is_archive(Path::new(name), "linux-image-6.1.0-56-amd64");
        assert!(is("/x/linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb"));
        assert!(!is("/x/linux-image-6.1.0-56-amd64-dbg_6.1.192-2_amd64.deb"));
        assert!(!is("/x/linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb.part"));
    }
}
