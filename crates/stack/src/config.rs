//! The configuration file: `STACK.toml`.
//!
//! ```toml
//! tree = "/run/steadfast/stack"     # where devices and volumes are files
//! metrics = "127.0.0.1:9188"        # or unix:PATH
//!
//! [device.c0d1s0]
//! path = "/var/lib/images/disk1.img"
//!
//! [ramdisk.testdisk]
//! size = "256m"
//!
//! [volume.d10]
//! components = ["c0d1s0", "testdisk"]
//! ```
//!
//! A volume is created at the first start, if its components are blank. Changes by commands are
//! stored beside the file, which is never written.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;
use steadfast_volume::ondisk::label::LayoutKind;
use toml::Spanned;

/// Longest name: labels have this room for it.
const NAME_MAX: usize = 31;

/// A configuration, checked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostConfig {
    /// Where the tree of files is mounted.
    pub tree: Option<PathBuf>,
    /// The control socket.
    pub socket: Option<PathBuf>,
    /// Where metrics are asked for: `unix:PATH` or a loopback address with port.
    pub metrics: Option<String>,
    /// Files and block devices.
    pub device: BTreeMap<Spanned<String>, Device>,
    /// RAM disks.
    pub ramdisk: BTreeMap<Spanned<String>, RamDisk>,
    /// Volumes.
    pub volume: BTreeMap<Spanned<String>, Volume>,
    /// File systems that are mounted for as long as the host runs.
    pub mount: BTreeMap<Spanned<String>, Mount>,
}

/// A file system on a volume, device or RAM disk.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// What it is on, by name; also of something that a command has made.
    pub volume: Spanned<String>,
    /// Where: a folder, from the configuration's own.
    pub at: PathBuf,
    /// Options, as `steadfast mount -o` takes them.
    #[serde(default)]
    pub options: String,
    /// Its external journal: the name of a volume or device, or a path with a slash in it.
    pub journal: Option<Spanned<String>>,
}

/// A file or block device.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Where it is.
    pub path: PathBuf,
    /// It does not count as keeping its contents without power.
    #[serde(default)]
    pub volatile: bool,
}

/// A RAM disk.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RamDisk {
    /// Its size: `256m`.
    pub size: Spanned<String>,
}

/// A volume.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// What it is.
    #[serde(default)]
    pub kind: LayoutKind,
    /// Names of its components, in order.
    pub components: Spanned<Vec<Spanned<String>>>,
    /// Names of those that do not count as keeping their contents.
    #[serde(default)]
    pub volatile: Vec<Spanned<String>>,
    /// The one that may be smaller than the mirror, and holds the regions that are read most.
    #[serde(default)]
    pub partial: Vec<Spanned<String>>,
    /// Bytes of each component in turn, of a stripe: `64k`.
    pub interlace: Option<Spanned<String>>,
    /// Read policy.
    pub read_policy: Option<Spanned<String>>,
    /// Write policy.
    pub write_policy: Option<Spanned<String>>,
    /// When it is resynced, of several.
    pub pass: Option<u8>,
    /// A mirror keeps checksums, and repairs legs that return something else than was written.
    #[serde(default)]
    pub checksums: bool,
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no TOML, or has what no configuration has.
    #[error("{name}: {source}")]
    Toml {
        /// The file's name.
        name: String,
        /// Where, and what was expected.
        source: toml::de::Error,
    },
    /// It says what cannot be: all of it, each with its line.
    #[error("{0}")]
    Wrong(String),
}

/// What no device, volume or mount can be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no name: 1 to {NAME_MAX} letters, digits and -_.:+, with a letter, and no - or . \
     first"
)]
pub struct NameError(pub String);

/// Something that is wrong, and where.
struct Wrong {
    at: Range<usize>,
    what: String,
}

impl HostConfig {
    /// Reads a configuration; `name` is the file's, for messages.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line.
    pub fn parse(text: &str, name: &str) -> Result<HostConfig, ConfigError> {
        let failed = |source| ConfigError::Toml { name: name.to_owned(), source };
        let config: HostConfig = toml::from_str(text).map_err(failed)?;
        let wrong = config.wrong();
        if wrong.is_empty() {
            return Ok(config);
        }
        let message: Vec<String> = wrong.iter().map(|w| message(text, name, w)).collect();
        Err(ConfigError::Wrong(message.join("\n")))
    }

    fn wrong(&self) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        let mut say = |at: Range<usize>, what: String| wrong.push(Wrong { at, what });
        let mut names: BTreeMap<&str, ()> = BTreeMap::new();
        let all = self.device.keys().chain(self.ramdisk.keys()).chain(self.volume.keys());
        for name in all {
            if let Err(what) = check_name(name.get_ref()) {
                say(name.span(), what.to_string());
            }
            if names.insert(name.get_ref(), ()).is_some() {
                say(name.span(), format!("'{}' is the name of two things", name.get_ref()));
            }
        }
        for disk in self.ramdisk.values() {
            if let Err(what) = steadfast_vfs::size::parse(disk.size.get_ref()) {
                say(disk.size.span(), what.to_string());
            }
        }
        let mut users: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, volume) in &self.volume {
            if volume.components.get_ref().is_empty() {
                say(volume.components.span(), "a volume has at least one component".into());
            }
            for component in volume.components.get_ref() {
                let used = component.get_ref().as_str();
                if !names.contains_key(used) {
                    say(component.span(), format!("there is no device or volume '{used}'"));
                }
                if let Some(other) = users.insert(used, name.get_ref()) {
                    say(component.span(), format!("'{used}' is a component of '{other}' already"));
                }
                if used == name.get_ref() {
                    say(component.span(), "a volume cannot be made of itself".into());
                }
            }
            for component in volume.volatile.iter().chain(&volume.partial) {
                let is_one = |c: &Spanned<String>| c.get_ref() == component.get_ref();
                if !volume.components.get_ref().iter().any(is_one) {
                    say(component.span(), format!("is no component of '{}'", name.get_ref()));
                }
            }
            if let Some(interlace) = &volume.interlace
                && let Err(what) = steadfast_vfs::size::parse(interlace.get_ref())
            {
                say(interlace.span(), what.to_string());
            }
            if volume.checksums && volume.kind != LayoutKind::Mirror {
                say(volume.components.span(), "checksums are a mirror's".into());
            }
            if let Some(read) = &volume.read_policy
                && steadfast_volume::ReadPolicy::named(read.get_ref()).is_none()
            {
                say(read.span(), "there is no such policy".into());
            }
            if let Some(write) = &volume.write_policy
                && steadfast_volume::WritePolicy::named(write.get_ref()).is_none()
            {
                say(write.span(), "there is no such policy".into());
            }
        }
        for (name, mount) in &self.mount {
            let named = [Some(name), Some(&mount.volume), mount.journal.as_ref()];
            for name in named.into_iter().flatten().filter(|name| !name.get_ref().contains('/')) {
                if let Err(what) = check_name(name.get_ref()) {
                    say(name.span(), what.to_string());
                }
            }
        }
        wrong.sort_by_key(|w| w.at.start);
        wrong
    }

    /// Volumes in an order in which what one is made of comes before it; those that are made of
    /// each other are left out.
    pub(crate) fn volumes_from_inside(&self) -> Vec<(&str, &Volume)> {
        let mut left: Vec<(&str, &Volume)> =
            self.volume.iter().map(|(name, v)| (name.get_ref().as_str(), v)).collect();
        let mut done: Vec<(&str, &Volume)> = Vec::new();
        loop {
            let waits = |v: &Volume| {
                let parts = v.components.get_ref();
                parts.iter().any(|c| left.iter().any(|(name, _)| name == c.get_ref()))
            };
            let Some(at) = left.iter().position(|(_, v)| !waits(v)) else { return done };
            let next = left.remove(at);
            done.push(next);
        }
    }
}

/// Whether something can have this name.
///
/// # Errors
/// Says what names are.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:+".contains(c);
    let good = !name.is_empty()
        && name.len() <= NAME_MAX
        && name.chars().all(plain)
        && !name.starts_with(['-', '.'])
        && !name.chars().all(|c| c.is_ascii_digit());
    if good { Ok(()) } else { Err(NameError(name.to_owned())) }
}

/// A line of the file with a caret under what is wrong.
fn message(text: &str, name: &str, wrong: &Wrong) -> String {
    let start = text[..wrong.at.start].rfind('\n').map_or(0, |n| n + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let number = text[..start].lines().count() + 1;
    let before = text[start..wrong.at.start].chars().count();
    let inside = line.chars().count().saturating_sub(before);
    let carets = text[wrong.at.clone()].chars().count().clamp(1, inside.max(1));
    let margin = " ".repeat(number.to_string().len());
    format!(
        "{name}, line {number}: {}\n{margin} |\n{number} | {line}\n{margin} | {}{}",
        wrong.what,
        " ".repeat(before),
        "^".repeat(carets)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_reported_at_once_with_its_place() {
        let text = "\
[device.a]
path = \"/a\"
[ramdisk.r]
size = \"many\"
[volume.v]
components = [\"a\", \"nothing\"]
read_policy = \"fastest\"
";
        let message = HostConfig::parse(text, "s.toml").unwrap_err().to_string();
        let expected = "\
s.toml, line 4: not a size; write a number with k, m, g or t (powers of 1024)
  |
4 | size = \"many\"
  |        ^^^^^^
s.toml, line 6: there is no device or volume 'nothing'
  |
6 | components = [\"a\", \"nothing\"]
  |                    ^^^^^^^^^
s.toml, line 7: there is no such policy
  |
7 | read_policy = \"fastest\"
  |               ^^^^^^^^^";
        assert_eq!(message, expected);
        let message = HostConfig::parse("[device.a]\npath = \"/a\"\nvolatil = true\n", "s.toml");
        assert!(message.unwrap_err().to_string().contains("volatil"));
    }

    #[test]
    fn volumes_come_after_what_they_are_made_of() {
        let text = "\
device.a.path = \"/a\"
volume.d10.components = [\"d11\"]
volume.d11.components = [\"a\"]
";
        let config = HostConfig::parse(text, "s.toml").unwrap();
        let order: Vec<&str> = config.volumes_from_inside().iter().map(|(n, _)| *n).collect();
        assert_eq!(order, ["d11", "d10"]);
    }
}
