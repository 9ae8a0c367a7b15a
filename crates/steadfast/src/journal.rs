//! Journal devices of this machine, found by UUID.
//!
//! The kernel finds a file system's journal by the device number that the superblock remembers,
//! and fails when devices were renumbered. The UUID says which it is, whatever its number.

use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use steadfast_ext4_format::ondisk::{Incompat, Superblock};
use uuid::Uuid;

use crate::error::{Error, Result};

/// The parts of an ext superblock that say which journal goes with which file system, read
/// without opening anything for use.
struct Names {
    uuid: Uuid,
    /// What this is itself is a journal.
    is_journal: bool,
    /// The journal that the file system has on another device, and the device number it remembers.
    journal: Option<(Uuid, u32)>,
}

impl Names {
    /// `None` of anything that has no such superblock, or that cannot be read.
    fn of(path: &Path) -> Option<Names> {
        // Opening a FIFO would wait.
        let kind = std::fs::metadata(path).ok()?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return None;
        }
        let file = std::fs::File::open(path).ok()?;
        let mut bytes = [0; 1024];
        file.read_exact_at(&mut bytes, 1024).ok()?;
        let sb = Superblock::parse_unchecked(&bytes).ok()?;
        let is_journal = sb.features().incompat.contains(Incompat::JOURNAL_DEV);
        let journal = (Uuid::from_bytes(sb.journal_uuid), sb.journal_device.get());
        let journal = (!is_journal && sb.has_external_journal()).then_some(journal);
        Some(Names { uuid: Uuid::from_bytes(sb.uuid), is_journal, journal })
    }
}

/// The path of the journal of the file system at `image`. `given` are the paths that were named for
/// it, each a journal device or a folder to look in: the only device is taken as it is (who opens
/// the journal says what is wrong with it), of several the one that has the UUID. With none given
/// the machine's block devices are looked through. `None`: the journal is inside, or not found.
///
/// ```
/// use steadfast::{Image, Journal, find_journal};
///
/// let folder = tempfile::tempdir()?;
/// let (disk, card) = (folder.path().join("disk.img"), folder.path().join("card.img"));
/// let image = Image::create(&disk).size(32 << 20).journal(Journal::external(&card));
/// image.mount()?.unmount()?;
/// assert_eq!(find_journal(&disk, &[folder.path().to_path_buf()])?, Some(card));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Nothing among what was given has the UUID; or two devices have it, and which is meant is for
/// a person to say.
pub fn find_journal(image: &Path, given: &[PathBuf]) -> Result<Option<PathBuf>> {
    if let [only] = given
        && !only.is_dir()
    {
        return Ok(Some(only.clone()));
    }
    let wanted = Names::of(image).and_then(|names| names.journal);
    let Some((uuid, number)) = wanted else {
        return match given.first() {
            None => Ok(None),
            Some(_) => Err(refused(format!(
                "{}: has no journal on another device: do not give one",
                image.display()
            ))),
        };
    };
    if given.is_empty() { find(uuid, number) } else { among(uuid, given).map(Some) }
}

fn refused(what: String) -> Error {
    Error::Refused { what }
}

/// The number of a block device as ext4 keeps it (`new_encode_dev`); 0 for an image file.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(steadfast::device_number(Path::new("disk.img")), 0);
/// ```
pub fn device_number(path: &Path) -> u32 {
    let Ok(meta) = std::fs::metadata(path) else { return 0 };
    if !meta.file_type().is_block_device() {
        return 0;
    }
    let (major, minor) = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The one with this UUID among devices and folders of them.
fn among(uuid: Uuid, given: &[PathBuf]) -> Result<PathBuf> {
    let mut candidates = Vec::new();
    for path in given {
        if !path.is_dir() {
            candidates.push(path.clone());
            continue;
        }
        let entries = path.read_dir().and_then(|entries| {
            let paths = entries.map(|entry| entry.map(|e| e.path()));
            paths.collect::<std::io::Result<Vec<_>>>()
        });
        let mut inside = entries.map_err(|source| Error::Host { path: path.clone(), source })?;
        inside.sort();
        candidates.extend(inside);
    }
    let Some(path) = the_only(uuid, candidates)? else {
        let places: Vec<String> = given.iter().map(|p| p.display().to_string()).collect();
        let what = format!("no journal with the UUID {uuid} that is needed: {}", places.join(", "));
        return Err(refused(what));
    };
    Ok(path)
}

/// The block device that holds the journal with this UUID: first where the file system
/// remembers it, then by the name that udev gave it, then any.
fn find(uuid: Uuid, number: u32) -> Result<Option<PathBuf>> {
    let major = (number & 0xf_ff00) >> 8;
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    let remembered = (number != 0).then(|| by_number(major, minor)).flatten();
    let named = PathBuf::from(format!("/dev/disk/by-uuid/{uuid}"));
    match remembered.into_iter().chain([named]).find(|path| is_journal(path, uuid)) {
        Some(path) => Ok(Some(path)),
        None => the_only(uuid, block_devices()),
    }
}

/// The only one that has the UUID. Two are a journal and its copy, and replaying an old copy
/// destroys data.
fn the_only(uuid: Uuid, candidates: Vec<PathBuf>) -> Result<Option<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut files = Vec::new();
    for path in candidates.into_iter().filter(|path| is_journal(path, uuid)) {
        let file = std::fs::metadata(&path).ok().map(|m| (m.dev(), m.ino(), m.rdev()));
        if !files.contains(&file) {
            files.push(file);
            found.push(path);
        }
    }
    if found.len() > 1 {
        let paths: Vec<String> = found.iter().map(|p| p.display().to_string()).collect();
        let what = format!(
            "the journal {uuid} is there more than once: {}; one may be an old copy: say which \
             it is with --journal (a mount: -o journal=)",
            paths.join(", ")
        );
        return Err(refused(what));
    }
    Ok(found.pop())
}

/// The node of a device number.
fn by_number(major: u32, minor: u32) -> Option<PathBuf> {
    let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/uevent")).ok()?;
    let name = text.lines().find_map(|l| l.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

fn block_devices() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/partitions").unwrap_or_default();
    let names = text.lines().skip(2).filter_map(|l| l.split_whitespace().nth(3));
    names.map(|n| Path::new("/dev").join(n.replace('!', "/"))).collect()
}

fn is_journal(path: &Path, uuid: Uuid) -> bool {
    Names::of(path).is_some_and(|names| names.is_journal && names.uuid == uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal device, as far as its superblock says.
    fn journal_in(folder: &Path, name: &str, uuid: Uuid) -> PathBuf {
        let path = folder.join(name);
        let mut bytes = vec![0; 4096];
        bytes[1024 + 0x38..][..2].copy_from_slice(&[0x53, 0xef]);
        bytes[1024 + 0x60] = 8;
        bytes[1024 + 0x68..][..16].copy_from_slice(uuid.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn journals_are_recognised_by_their_superblock() {
        let folder = tempfile::tempdir().unwrap();
        let uuid = Uuid::from_bytes([7; 16]);
        let path = journal_in(folder.path(), "journal", uuid);
        assert!(is_journal(&path, uuid));
        assert!(!is_journal(&path, Uuid::from_bytes([8; 16])));
        assert_eq!(device_number(&path), 0);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[1024 + 0x60] = 0;
        std::fs::write(&path, bytes).unwrap();
        assert!(!is_journal(&path, uuid));
    }

    #[test]
    fn a_folder_is_looked_through_and_copies_are_not_chosen_between() {
        let folder = tempfile::tempdir().unwrap();
        let (uuid, other) = (Uuid::from_bytes([7; 16]), Uuid::from_bytes([8; 16]));
        let path = journal_in(folder.path(), "b", uuid);
        journal_in(folder.path(), "c", other);
        std::fs::write(folder.path().join("a"), "a note").unwrap();
        let given = [folder.path().to_path_buf()];
        assert_eq!(among(uuid, &given).unwrap(), path);
        // The same file twice is one.
        assert_eq!(among(uuid, &[path.clone(), given[0].clone()]).unwrap(), path);
        assert!(among(Uuid::nil(), &given).unwrap_err().to_string().contains("no journal"));
        journal_in(folder.path(), "d", uuid);
        let error = among(uuid, &given).unwrap_err().to_string();
        assert!(error.contains("more than once") && error.contains("/d"), "{error}");
    }
}
