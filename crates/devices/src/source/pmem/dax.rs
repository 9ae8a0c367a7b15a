//! The kernel's description of a DAX device (`/dev/daxN.M`): a character device, whose size and
//! alignment are in /sys (Documentation/ABI/testing/sysfs-bus-dax).

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, major, minor};

/// A DAX device, by its folder of /sys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DaxDevice {
    /// The folder.
    pub folder: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Mappings begin and end at multiples of so many bytes.
    pub align: u64,
}

/// The device of that number; `None` if it is no DAX device.
pub(super) fn of_device(dev: Dev) -> Option<DaxDevice> {
    let link = format!("/sys/dev/char/{}:{}", major(dev), minor(dev));
    of_folder(&fs::canonicalize(link).ok()?)
}

fn of_folder(folder: &Path) -> Option<DaxDevice> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
    };
    // Others have a size too: flash memory (mtd).
    let kind = fs::canonicalize(folder.join("subsystem")).ok()?;
    kind.file_name().filter(|name| *name == "dax")?;
    let size = number("size")?;
    // Linux has this attribute since 5.10; before, it was in the region's folder.
    let above = || {
        let text = fs::read_to_string(folder.parent()?.join("align")).ok()?;
        text.trim().parse().ok()
    };
    let align = number("align").or_else(above).filter(|align: &u64| *align > 0).unwrap_or(4096);
    Some(DaxDevice { folder: folder.to_owned(), size, align })
}

impl DaxDevice {
    /// Bytes that can be mapped: what is left over at the end cannot.
    pub fn mappable(&self) -> u64 {
        self.size / self.align * self.align
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_alignment_are_those_of_sys() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("region0/dax0.0/dax0.0");
        fs::create_dir_all(&folder).unwrap();
        for kind in ["bus/dax", "class/mtd"] {
            fs::create_dir_all(top.path().join(kind)).unwrap();
        }
        let subsystem = |kind: &str| {
            let link = folder.join("subsystem");
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(top.path().join(kind), link).unwrap();
        };
        assert_eq!(of_folder(&folder), None, "no DAX device");
        fs::write(folder.join("size"), "4096\n").unwrap();
        assert_eq!(of_folder(&folder), None, "of no kind");
        subsystem("class/mtd");
        assert_eq!(of_folder(&folder), None, "flash memory");
        subsystem("bus/dax");
        let of = |file: &str, text: &str| {
            fs::write(folder.join(file), text).unwrap();
            of_folder(&folder)
        };
        let found = of("size", "266338304\n").unwrap();
        assert_eq!((found.size, found.align, found.mappable()), (266_338_304, 4096, 266_338_304));
        fs::write(folder.parent().unwrap().join("align"), "2097152\n").unwrap();
        assert_eq!(of_folder(&folder).unwrap().align, 2 << 20);
        fs::remove_file(folder.parent().unwrap().join("align")).unwrap();
        // A size that is no multiple of it: the rest cannot be mapped.
        assert_eq!(of("align", "2097152\n").unwrap().mappable(), 127 * (2 << 20));
        assert_eq!(of("align", "0\n").unwrap().align, 4096);
        assert_eq!(of("align", "1073741824\n").unwrap().mappable(), 0);
        assert_eq!(of("size", "much\n"), None);
        // More than there can be: it does not map, and nothing overflows.
        assert_eq!(of("size", "18446744073709551615\n").unwrap().mappable(), 17_179_869_183 << 30);
    }
}
