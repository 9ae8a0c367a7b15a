//! The guest's first file system: a cpio archive ("newc") that the kernel unpacks into memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use cpio::newc::{Builder, trailer};

use super::kernel::GuestKernel;
use super::{BEGIN, END, Guest};
use crate::packages;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// Path in the archive, without its first slash, to contents.
type Files = BTreeMap<String, Vec<u8>>;

/// Makes the archive of a job.
pub fn write(image: &Path, guest: &Guest<'_>, kernel: &GuestKernel) -> anyhow::Result<()> {
    let mut files = Files::new();
    let busybox = packages::find("busybox").context("busybox is not there")?;
    files.insert("bin/busybox".into(), read(&busybox)?);
    for program in guest.programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        files.insert(format!("bin/{name}"), read(program)?);
        for library in libraries(program)? {
            let path = library.to_string_lossy();
            files.insert(path.trim_start_matches('/').to_owned(), read(&library)?);
        }
    }
    let mut insert = String::new();
    let mut known = BTreeSet::new();
    for module in guest.modules {
        let (name, parameters) = module.split_once(' ').unwrap_or((module, ""));
        let needed = kernel.files_of(name)?;
        for (n, file) in needed.iter().enumerate() {
            let stem = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stem = stem.trim_end_matches(".xz").to_owned();
            if known.insert(stem.clone()) {
                let parameters = if n + 1 == needed.len() { parameters } else { "" };
                writeln!(insert, "insmod /modules/{stem} {parameters} || exit_with 127")?;
                files.insert(format!("modules/{stem}"), module_bytes(file)?);
            }
        }
    }
    if guest.nvdimm.as_ref().is_some_and(|nvdimm| nvdimm.dax) {
        insert += FSDAX;
    }
    files.insert("init".into(), init(&insert).into_bytes());
    files.insert("functions".into(), functions(guest.programs).into_bytes());
    files.insert("job".into(), guest.script.as_bytes().to_vec());
    let mut out = BufWriter::new(File::create(image)?);
    archive(&files, &mut out)?;
    Ok(out.flush()?)
}

/// The first program: sets up, runs the job, says how it ended, and switches the guest off.
fn init(insert: &str) -> String {
    format!(
        "#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
stty -F /dev/ttyS1 raw
exec < /dev/null > /dev/ttyS1 2>&1
exit_with() {{
    # What was written before may end within a line.
    echo
    echo '{END}'$1
    sync
    sleep 1
    poweroff -f
    sleep 60
}}
echo '{BEGIN}'$(uname -r)
{insert}sh -c '. /functions; . /job'
exit_with $?
"
    )
}

/// A namespace has no pages of its own until an area for them is made, and without them no DAX.
/// This is `ndctl create-namespace --mode=fsdax --map=mem`; it stays in the file.
const FSDAX: &str = "\
if [ \"$(cat /sys/block/pmem0/queue/dax)\" != 1 ]; then
    (
        set -e
        cd /sys/bus/nd
        echo namespace0.0 > drivers/nd_pmem/unbind
        cat /proc/sys/kernel/random/uuid > devices/pfn0.0/uuid
        echo ram > devices/pfn0.0/mode
        echo 2097152 > devices/pfn0.0/align
        echo namespace0.0 > devices/pfn0.0/namespace
        echo pfn0.0 > drivers/nd_pmem/bind
    ) || exit_with 126
fi
";

/// The shell would take its own program of a name, whatever is in PATH, but a function comes first.
fn functions(programs: &[PathBuf]) -> String {
    let names = programs.iter().filter_map(|program| program.file_name()?.to_str());
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let function = |name: &str| format!("{name}() {{ /bin/{name} \"$@\"; }}\n");
    names.filter(|name| is_name(name)).map(function).collect()
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

/// A module as busybox takes it.
fn module_bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "xz") {
        return read(path);
    }
    let output = Command::new("xz").arg("-dc").arg(path).output()?;
    anyhow::ensure!(output.status.success(), "{}: cannot be unpacked", path.display());
    Ok(output.stdout)
}

/// The libraries that a program is started with, the loader among them.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output()?;
    // A static program has none, and ldd says so with an error.
    Ok(listed(&String::from_utf8_lossy(&output.stdout)))
}

/// Paths in the output of ldd: "name => PATH (address)", or "PATH (address)" of the loader.
fn listed(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let line = line.trim();
        let path = line.split_once("=> ").map_or(line, |(_, path)| path);
        let path = path.split(" (").next().unwrap_or_default().trim();
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// Each folder before what is in it.
fn archive(files: &Files, out: &mut impl Write) -> anyhow::Result<()> {
    let mut folders = BTreeSet::new();
    for path in files.keys() {
        let parents = Path::new(path).ancestors().skip(1);
        let parents = parents.filter(|p| !p.as_os_str().is_empty());
        folders.extend(parents.map(|p| p.to_string_lossy().into_owned()));
    }
    let all = folders.iter().map(|folder| (folder.as_str(), FOLDER, &[][..]));
    let all = all.chain(files.iter().map(|(name, bytes)| (name.as_str(), PROGRAM, &bytes[..])));
    for (inode, (name, mode, bytes)) in all.enumerate() {
        entry(out, inode, name, mode, bytes)?;
    }
    trailer(out)?;
    Ok(())
}

fn entry(
    out: &mut impl Write,
    inode: usize,
    name: &str,
    mode: u32,
    bytes: &[u8],
) -> anyhow::Result<()> {
    let size = u32::try_from(bytes.len()).with_context(|| format!("{name}: too large"))?;
    // OK to truncate: there are few files.
    let builder = Builder::new(name).ino(inode as u32 + 1).nlink(1).mode(mode);
    let mut writer = builder.write(out, size);
    writer.write_all(bytes)?;
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::NewcReader;

    #[test]
    fn libraries_are_those_with_a_path() {
        let text = "\tlinux-vdso.so.1 (0x7ffd)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x7f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n\tlibgone.so => not found\n";
        let paths = ["/lib/x/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(listed(text), paths.map(PathBuf::from));
        assert!(listed("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn programs_come_before_those_of_the_shell() {
        let programs = ["/sbin/mke2fs", "/usr/bin/run-parts"].map(PathBuf::from);
        assert_eq!(functions(&programs), "mke2fs() { /bin/mke2fs \"$@\"; }\n");
    }

    #[test]
    fn the_archive_has_folders_before_files_and_an_end() {
        let files = Files::from([
            ("init".to_owned(), b"first".to_vec()),
            ("lib/x/libc.so.6".to_owned(), vec![7; 5000]),
        ]);
        let mut bytes = Vec::new();
        archive(&files, &mut bytes).unwrap();
        let mut rest = &bytes[..];
        let mut seen = Vec::new();
        loop {
            let mut reader = NewcReader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut contents = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut contents).unwrap();
            seen.push((name, mode, contents.len()));
            rest = reader.finish().unwrap();
        }
        let file = |name: &str, mode, bytes| (name.to_owned(), mode, bytes);
        let wanted = [
            file("lib", FOLDER, 0),
            file("lib/x", FOLDER, 0),
            file("init", PROGRAM, 5),
            file("lib/x/libc.so.6", PROGRAM, 5000),
        ];
        assert_eq!(seen, wanted);
    }
}
