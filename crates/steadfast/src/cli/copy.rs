//! Arguments of `put`, `get` and of what fills a new image: files and folders, or tar archives.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use steadfast::tree::OwnerMap;
use steadfast::tree::Whiteouts;

use super::{Image, Reading};
use crate::outcome::Usage;

/// Whose the copies are.
#[derive(Debug, Clone, Args)]
pub struct Owners {
    /// Everything belongs to this user and group
    #[arg(long, value_name = "UID:GID", value_parser = pair)]
    pub owner: Option<(u32, u32)>,
    /// Users from FROM on become those from TO on, COUNT of them; may be repeated
    #[arg(long, value_name = "FROM:TO[:COUNT]", value_parser = range)]
    pub map_users: Vec<(u32, u32, u32)>,
    /// The same for groups
    #[arg(long, value_name = "FROM:TO[:COUNT]", value_parser = range)]
    pub map_groups: Vec<(u32, u32, u32)>,
}

impl Owners {
    /// As the library has it.
    pub fn map(&self) -> OwnerMap {
        let map = self.owner.map_or_else(OwnerMap::new, |(uid, gid)| OwnerMap::new().all(uid, gid));
        let map = self.map_users.iter().fold(map, |map, &(from, to, n)| map.users(from, to, n));
        self.map_groups.iter().fold(map, |map, &(from, to, n)| map.groups(from, to, n))
    }
}

fn numbers(text: &str, example: &str) -> Result<Vec<u32>, String> {
    let number =
        |text: &str| text.parse::<u32>().map_err(|_| format!("'{text}' is no number: {example}"));
    text.split(':').map(number).collect()
}

fn pair(text: &str) -> Result<(u32, u32), String> {
    const EXAMPLE: &str = "two are needed, as in 0:0";
    match numbers(text, EXAMPLE)?.as_slice() {
        [uid, gid] => Ok((*uid, *gid)),
        _ => Err(EXAMPLE.to_owned()),
    }
}

fn range(text: &str) -> Result<(u32, u32, u32), String> {
    const EXAMPLE: &str = "two or three are needed, as in 0:100000:65536";
    match numbers(text, EXAMPLE)?.as_slice() {
        [from, to] => Ok((*from, *to, 1)),
        [from, to, count] => Ok((*from, *to, *count)),
        _ => Err(EXAMPLE.to_owned()),
    }
}

/// What is done with a container layer's whiteouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum WhiteoutWay {
    /// They are files as others
    #[default]
    Keep,
    /// Remove what they name
    Apply,
    /// Make of them what overlayfs has
    Overlay,
}

impl From<WhiteoutWay> for Whiteouts {
    fn from(way: WhiteoutWay) -> Whiteouts {
        match way {
            WhiteoutWay::Keep => Whiteouts::Keep,
            WhiteoutWay::Apply => Whiteouts::Apply,
            WhiteoutWay::Overlay => Whiteouts::Overlay,
        }
    }
}

/// What to copy into an image.
#[derive(Debug, Args)]
#[command(
    override_usage = "\
steadfast put [OPTIONS] IMAGE HOST_PATH PATH
       steadfast put [OPTIONS] --tar FILE IMAGE [PATH]",
    after_help = "\
Examples:
  steadfast put -r disk.img ./src /src
  steadfast put --tar root.tar disk.img
  zcat layer.tar.gz | steadfast put --tar - --whiteouts apply disk.img
  SOURCE_DATE_EPOCH=0 steadfast put -r disk.img ./src /src   same bytes again

Copies as cp -a does: holes, hard links, owners, modes, times, attributes,
access lists, capabilities, devices. What cannot be kept is printed once. A file
that exists is replaced when its copy is complete; folders are merged.
A file that fails is reported; the rest is copied, and the exit status is 1.

An archive (ustar, GNU, pax) is read once, as a stream. Its names stay below
PATH: '..' is refused, a '/' in front left out, no link followed.
With SOURCE_DATE_EPOCH set (seconds) the same input into the same image gives
the same bytes: names come in their order, no time is later."
)]
pub struct Put {
    /// Copy directories with all they hold
    #[arg(short)]
    pub recursive: bool,
    /// Stop at the first failure
    #[arg(long)]
    pub strict: bool,
    /// Unpack this tar archive into PATH [default: /]; - is the standard input
    #[arg(long, value_name = "FILE", conflicts_with = "recursive")]
    pub tar: Option<PathBuf>,
    /// What a container's whiteouts (.wh.NAME) in the archive do
    #[arg(long, value_name = "WAY", value_enum, default_value_t, requires = "tar")]
    pub whiteouts: WhiteoutWay,
    #[command(flatten)]
    pub owners: Owners,
    #[command(flatten)]
    pub image: Image,
    /// File or directory of this machine; not with --tar
    pub host_path: Option<OsString>,
    /// Path in the image
    pub path: Option<OsString>,
}

/// What is copied into an image, and where to.
pub enum PutSource<'a> {
    /// A file or a directory.
    Host(&'a Path, String),
    /// A tar archive.
    Tar(&'a Path, String),
}

impl Put {
    /// What the paths are: with an archive there is one less.
    pub fn source(&self) -> Result<PutSource<'_>, Usage> {
        match (&self.tar, &self.host_path, &self.path) {
            (Some(tar), path, None) => Ok(PutSource::Tar(tar, in_image(path.as_deref())?)),
            (Some(_), _, Some(_)) => {
                usage!("with --tar FILE only the image and a path in it follow")
            }
            (None, Some(host), Some(path)) => {
                Ok(PutSource::Host(Path::new(host), in_image(Some(path))?))
            }
            (None, _, _) => usage!("say what to copy, and where to: IMAGE HOST_PATH PATH"),
        }
    }
}

/// What to copy out of an image.
#[derive(Debug, Args)]
#[command(
    override_usage = "\
steadfast get [OPTIONS] IMAGE PATH HOST_PATH
       steadfast get [OPTIONS] --tar FILE IMAGE [PATH]",
    after_help = "\
Examples:
  steadfast get -r disk.img /src ./copy
  steadfast get --tar root.tar disk.img
  steadfast get --tar - disk.img /etc | tar -tv

Copies as cp -a does (see put); as root also owners, devices and set-id bits, so
copy what you do not trust as an ordinary user, or where nobody else can go.
Nothing is written outside the target, and no symbolic link in it is followed;
a target that is one itself only if it ends in '/'.
A target folder that was there before keeps its owner and mode.
A file that fails is reported; the rest is copied, and the exit status is 1.

An archive is pax where that is needed: attributes, access lists, holes (as GNU
tar -S writes them), names by their order below PATH. Without root it has all
that the image has; what extracts it: tar -xp --xattrs --acls."
)]
pub struct Get {
    /// Copy directories with all they hold
    #[arg(short)]
    pub recursive: bool,
    /// Stop at the first failure
    #[arg(long)]
    pub strict: bool,
    /// Write PATH [default: /] as a tar archive to FILE; - is the standard output
    #[arg(long, value_name = "FILE", conflicts_with = "recursive")]
    pub tar: Option<PathBuf>,
    #[command(flatten)]
    pub owners: Owners,
    #[command(flatten)]
    pub image: Reading,
    /// Path in the image
    pub path: Option<OsString>,
    /// Where to on this machine; not with --tar
    pub host_path: Option<PathBuf>,
}

/// What is copied out of an image, and where to.
pub enum GetTarget<'a> {
    /// A file or a directory.
    Host(String, &'a Path),
    /// A tar archive.
    Tar(String, &'a Path),
}

impl Get {
    /// What the paths are: with an archive there is one less.
    pub fn target(&self) -> Result<GetTarget<'_>, Usage> {
        match (&self.tar, &self.path, &self.host_path) {
            (Some(tar), path, None) => Ok(GetTarget::Tar(in_image(path.as_deref())?, tar)),
            (Some(_), _, Some(_)) => {
                usage!("with --tar FILE only the image and a path in it follow")
            }
            (None, Some(path), Some(host)) => Ok(GetTarget::Host(in_image(Some(path))?, host)),
            (None, _, _) => usage!("say what to copy, and where to: IMAGE PATH HOST_PATH"),
        }
    }
}

/// A path in the image; all of it unless one is given.
fn in_image(path: Option<&OsStr>) -> Result<String, Usage> {
    let path = path.unwrap_or(OsStr::new("/"));
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => usage!("{}: the path is not UTF-8", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_owners() {
        assert_eq!((pair("0:5"), range("1:2")), (Ok((0, 5)), Ok((1, 2, 1))));
        assert_eq!(range("0:100000:65536"), Ok((0, 100_000, 65_536)));
        for bad in ["", "1", "1:2:3:4", "a:b", "-1:0", "4294967296:0"] {
            assert!(pair(bad).is_err(), "{bad}");
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
