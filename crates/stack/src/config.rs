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

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use steadfast_devices::model::parameters::Size;
use steadfast_setup::form::{Fields, WrongFile, did_you_mean, read_text};
use steadfast_setup::table;
use steadfast_setup::tables::nesting::check_nesting;
use steadfast_volume::ondisk::label::LayoutKind;
use steadfast_volume::{ReadPolicy, WritePolicy};

/// Longest name: labels have this room for it.
const NAME_MAX: usize = 31;

table! {
    /// A configuration, checked.
    pub struct HostConfig: "the file", check HostConfig::check {
        /// Where the tree of files is mounted.
        tree: Option<PathBuf>, else "a folder of the host's own";
        /// The control socket.
        socket: Option<PathBuf>, else "where commands look for it";
        /// Where metrics are asked for: `unix:PATH` or a loopback address with port.
        metrics: Option<String>, else "nowhere";
        /// Files and block devices.
        device: BTreeMap<String, Device>, else "none";
        /// RAM disks.
        ramdisk: BTreeMap<String, RamDisk>, else "none";
        /// Volumes.
        volume: BTreeMap<String, Volume>, else "none";
        /// File systems that are mounted for as long as the host runs.
        mount: BTreeMap<String, Mount>, else "none";
    }
}

table! {
    /// A file system on a volume, device or RAM disk.
    pub struct Mount: "[mount.NAME]", check Mount::check {
        /// What it is on, by name; also of something that a command has made.
        volume: String;
        /// Where: a folder, from the configuration's own.
        at: PathBuf;
        /// Options, as `steadfast mount -o` takes them.
        options: String = "";
        /// Its external journal: the name of a volume or device, or a path with a slash in it.
        journal: Option<String>, else "on the same";
    }
}

table! {
    /// A file or block device.
    pub struct Device: "[device.NAME]" {
        /// Where it is.
        path: PathBuf;
        /// It does not count as keeping its contents without power.
        volatile: bool = false;
    }
}

table! {
    /// A RAM disk.
    pub struct RamDisk: "[ramdisk.NAME]" {
        /// Its size: `256m`.
        size: Size;
    }
}

table! {
    /// A volume.
    pub struct Volume: "[volume.NAME]", check Volume::check {
        /// What it is.
        kind: LayoutKind = "mirror";
        /// Names of its components, in order.
        components: Vec<String>;
        /// Names of those that do not count as keeping their contents.
        volatile: Vec<String> = [];
        /// The one that may be smaller than the mirror, and holds the regions that are read most.
        partial: Vec<String> = [];
        /// Bytes of each component in turn, of a stripe: `64k`.
        interlace: Option<Size>, else "64k";
        /// Read policy.
        read_policy: Option<String>, else "`roundrobin`";
        /// Write policy.
        write_policy: Option<WritePolicy>, else "`parallel`";
        /// When it is resynced, of several.
        pass: Option<u8>, else "1";
        /// A mirror keeps checksums, and repairs legs that return something else than was written.
        checksums: bool = false;
    }
}

/// What no device, volume or mount can be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no name: 1 to {NAME_MAX} letters, digits and -_.:+, with a letter, and no - or . \
     first"
)]
pub struct NameError(pub String);

impl HostConfig {
    /// Reads a configuration; `name` is the file's, for messages.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line.
    pub fn parse(text: &str, name: &str) -> Result<HostConfig, WrongFile> {
        let read = read_text(text, |_| (), HostConfig::read_whole);
        read.map_err(|wrongs| WrongFile::new(name, text, wrongs, ""))
    }

    fn check(top: &Fields<'_>, _: Option<&HostConfig>) {
        let tables = ["device", "ramdisk", "volume"].map(|kind| top.tables_by_name(kind));
        let mut names = BTreeSet::new();
        for (name, fields) in tables.iter().flatten() {
            note_name(fields, "", name);
            if !names.insert(name) {
                fields.wrong("", format!("'{name}' is the name of two things"), "");
            }
        }
        let mut users: BTreeMap<String, &str> = BTreeMap::new();
        let [.., volumes] = &tables;
        let components = |fields: &Fields<'_>| fields.get("components").unwrap_or_default();
        let members = volumes.iter().map(|(name, fields)| (name.as_str(), components(fields)));
        check_nesting(volumes, "components", &members.collect());
        for (name, fields) in volumes {
            for used in components(fields) {
                let wrong = |what: String| fields.wrong_word("components", &used, what);
                if !names.contains(&used) {
                    wrong(format!("there is no device or volume '{used}'"));
                }
                // Twice in one is noted above.
                if let Some(other) = users.insert(used.clone(), name).filter(|o| o != name) {
                    wrong(format!("'{used}' is a component of '{other}' already"));
                }
            }
        }
        let mounts = top.tables_by_name("mount");
        for (name, fields) in mounts.iter().filter(|(name, _)| !name.contains('/')) {
            note_name(fields, "", name);
        }
    }

    /// Volumes in an order in which what one is made of comes before it.
    pub(crate) fn volumes_from_inside(&self) -> Vec<(&str, &Volume)> {
        let mut left: Vec<(&str, &Volume)> =
            self.volume.iter().map(|(name, v)| (name.as_str(), v)).collect();
        let mut done: Vec<(&str, &Volume)> = Vec::new();
        loop {
            let waits =
                |v: &Volume| v.components.iter().any(|c| left.iter().any(|(name, _)| name == c));
            let Some(at) = left.iter().position(|(_, v)| !waits(v)) else { return done };
            let next = left.remove(at);
            done.push(next);
        }
    }
}

impl Volume {
    fn check(fields: &Fields<'_>, volume: Option<&Volume>) {
        if let Some(name) = fields.get::<String>("read_policy")
            && ReadPolicy::named(&name).is_none()
        {
            fields.wrong("read_policy", "there is no such policy", "");
        }
        let Some(volume) = volume else { return };
        if volume.components.is_empty() {
            fields.wrong("components", "a volume has at least one component", "");
        }
        for (key, names) in [("volatile", &volume.volatile), ("partial", &volume.partial)] {
            for name in names.iter().filter(|name| !volume.components.contains(name)) {
                let help = did_you_mean(name, volume.components.iter().map(String::as_str));
                fields.wrong_word(key, name, format!("'{name}' is no component: {help}"));
            }
        }
        if volume.checksums && volume.kind != LayoutKind::Mirror {
            fields.wrong("checksums", "checksums are a mirror's", "");
        }
    }
}

impl Mount {
    fn check(fields: &Fields<'_>, mount: Option<&Mount>) {
        let Some(mount) = mount else { return };
        let named = [("volume", Some(&mount.volume)), ("journal", mount.journal.as_ref())];
        for (key, name) in named.into_iter().filter_map(|(key, name)| Some((key, name?))) {
            if !name.contains('/') {
                note_name(fields, key, name);
            }
        }
    }
}

/// Notes that a name is none.
fn note_name(fields: &Fields<'_>, key: &str, name: &str) {
    if let Err(what) = check_name(name) {
        fields.wrong(key, what.to_string(), "");
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
        let wrong = HostConfig::parse(text, "s.toml").unwrap_err();
        let found: Vec<(&str, &str)> =
            wrong.wrongs.iter().map(|w| (&text[w.at.clone()], w.what.as_str())).collect();
        let size = "not a size; write a number with k, m, g or t (powers of 1024)";
        let expected = [
            ("\"many\"", size),
            ("nothing", "there is no device or volume 'nothing'"),
            ("\"fastest\"", "there is no such policy"),
        ];
        assert_eq!(found, expected);
        let shown = "error: there is no device or volume 'nothing'\n --> s.toml:6:21\n";
        assert!(wrong.to_string().contains(shown), "{wrong}");
        let message = HostConfig::parse("[device.a]\npath = \"/a\"\nvolatil = true\n", "s.toml");
        assert!(message.unwrap_err().to_string().contains("volatil"));
        for (text, what) in [
            ("[device.-]\npath = '/a'\n[ramdisk.-]\nsize = '1m'", "'-' is the name of two things"),
            ("[volume.v]\ncomponents = ['v']", "[volume.v] is made of itself: v > v"),
            (
                "volume.a.components = ['b']\nvolume.b.components = ['a']",
                "[volume.a] is made of itself: a > b > a",
            ),
            ("[volume.v]\ncomponents = []", "a volume has at least one component"),
            ("[device.a]\n[mount.m]\nvolume = '-'\nat = '/'", "'-' is no name"),
        ] {
            let wrong = HostConfig::parse(text, "s.toml").unwrap_err();
            assert!(wrong.wrongs.iter().any(|w| w.what.starts_with(what)), "{wrong}");
        }
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
