//! `ls`: a line for each object of a folder, or with `-R` of a tree.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use anyhow::Result;
use steadfast::tree::{Folder, FolderEntry};
use steadfast::{FileSystem, FileType, Metadata};
use steadfast_vfs::path::shown;

use super::{outcome_of, to_anyhow};
use crate::{CommandEnd, terminal};

/// A line: what the object is, as far as that can be read, and its name.
type Row = (Option<Metadata>, String);

/// Writes one line an entry: mode, links, owner, group, size, time, name. With `recursive` the
/// folders below follow, each under its path. An object that cannot be read has its name and
/// question marks.
pub fn ls(fs: &FileSystem, path: &str, recursive: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    let start = fs.metadata(path).map_err(to_anyhow)?;
    if !start.is_dir() {
        write_rows(&[(Some(start), shown(path.as_bytes()))], out)?;
        return Ok(CommandEnd::Good);
    }
    let mut failures = 0;
    let folders = fs.folders(path).map_err(to_anyhow)?;
    for (n, folder) in folders.take(if recursive { usize::MAX } else { 1 }).enumerate() {
        let Folder { path, entries, errors, entered, .. } = folder;
        if recursive && entered {
            let gap = if n > 0 { "\n" } else { "" };
            writeln!(out, "{gap}{}:", shown(path.as_os_str().as_bytes()))?;
        }
        for e in errors {
            failures += 1;
            terminal::error(&to_anyhow(e));
        }
        let rows: Vec<Row> = entries.iter().map(|entry| (entry.metadata, text_of(entry))).collect();
        write_rows(&rows, out)?;
    }
    Ok(outcome_of(failures, "the rest is listed"))
}

/// The name, and where a link leads.
fn text_of(entry: &FolderEntry) -> String {
    let name = shown(entry.name.as_bytes());
    match (&entry.target, entry.metadata) {
        (Some(target), _) => format!("{name} -> {}", shown(target.as_os_str().as_bytes())),
        (None, Some(link)) if link.is_symlink() => format!("{name} -> ?"),
        (None, _) => name,
    }
}

fn write_rows(rows: &[Row], out: &mut dyn Write) -> Result<()> {
    let width = |f: &dyn Fn(&Metadata) -> String| {
        rows.iter().filter_map(|(a, _)| a.as_ref()).map(|a| f(a).len()).max().unwrap_or(1)
    };
    let links = width(&|a| a.nlink().to_string());
    let user = width(&|a| a.uid().to_string());
    let group = width(&|a| a.gid().to_string());
    let size = width(&|a| a.len().to_string());
    for (attr, name) in rows {
        let Some(a) = attr else {
            let q = "?";
            let time = "?                  ";
            writeln!(
                out,
                "?????????? {q:>links$} {q:>user$} {q:>group$} {q:>size$} {time} {name}"
            )?;
            continue;
        };
        writeln!(
            out,
            "{} {:>links$} {:>user$} {:>group$} {:>size$} {} {name}",
            mode_text(a),
            a.nlink(),
            a.uid(),
            a.gid(),
            a.len(),
            time_text(a.mtime())
        )?;
    }
    Ok(())
}

fn mode_text(a: &Metadata) -> String {
    let kind = match a.file_type() {
        FileType::Regular => '-',
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::CharDevice => 'c',
        FileType::BlockDevice => 'b',
        FileType::Fifo => 'p',
        FileType::Socket => 's',
    };
    let mut text = String::from(kind);
    let specials = [(0o4000, 's', 'S'), (0o2000, 's', 'S'), (0o1000, 't', 'T')];
    for (i, (special, with_x, without_x)) in specials.into_iter().enumerate() {
        let bits = a.mode() >> (6 - 3 * i);
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (a.mode() & special != 0, bits & 1 != 0) {
            (true, true) => with_x,
            (true, false) => without_x,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// UTC, as ISO 8601 to the second.
fn time_text(seconds: i64) -> String {
    jiff::Timestamp::new(seconds, 0)
        .map_or_else(|_| format!("@{seconds}"), |t| t.strftime("%Y-%m-%d %H:%M:%S").to_string())
}
