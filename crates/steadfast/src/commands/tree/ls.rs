//! `ls`: a line for each object of a folder, or with `-R` of a tree.

use std::cell::Cell;
use std::hash::RandomState;
use std::io::Write;
use std::rc::Rc;

use anyhow::{Context, Result};
use steadfast_vfs::path::resolve;
use steadfast_vfs::{Attr, FileSystem, FileType, Timestamp};

use super::bound::Bound;
use super::failures::Failures;
use super::listing::{Listing, Next};
use super::names::{joined, shown};
use super::walk::{Side, Walk, in_use, more_refused};
use crate::Outcome;

/// A line: what the object is, as far as that can be read, and its name.
type Row = (Option<Attr>, String);

/// Folders by name.
type Folders = Vec<(Vec<u8>, Attr)>;

/// Writes one line an entry: mode, links, owner, group, size, time, name. With `recursive` the
/// folders below follow, each under its path. An object that cannot be read has its name and
/// question marks.
pub fn ls(
    fs: &dyn FileSystem,
    path: &[u8],
    recursive: bool,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let attr = resolve(fs, path, true).with_context(|| shown(path))?;
    let mut failures = Failures::new(false);
    let bound = Bound::of(fs, Side::Image).with_context(|| shown(path))?;
    let all_left = Rc::new(Cell::new(bound.bytes));
    let listing = |dir: &Attr| Listing::new(dir, bound, Rc::clone(&all_left), RandomState::new());
    let done = if attr.kind != FileType::Directory {
        write_rows(&[(Some(attr), shown(path))], out)
    } else if recursive {
        list_tree(fs, (&attr, path), &listing, out, &mut failures)
    } else {
        let (rows, _) = rows_of(fs, listing(&attr), path, &mut failures)?;
        write_rows(&rows, out)
    };
    failures.end(done, "the rest is listed")
}

/// The rows of a folder by name, and the folders among them.
fn rows_of(
    fs: &dyn FileSystem,
    mut listing: Listing,
    path: &[u8],
    failures: &mut Failures,
) -> Result<(Vec<Row>, Folders)> {
    let mut names: Vec<(Vec<u8>, Option<Attr>)> = Vec::new();
    while let Some(next) = listing.next(fs) {
        match next {
            Next::Entry(e) => match fs.getattr(e.ino).and_then(in_use) {
                Ok(attr) => names.push((e.name, Some(attr))),
                Err(why) => {
                    failures.tell(&joined(path, &e.name), why)?;
                    names.push((e.name, None));
                }
            },
            Next::Refused(name, why) => {
                failures.say(&joined(path, &name), why)?;
                names.push((name, None));
            }
            Next::More(count) => failures.say(path, &more_refused(count))?,
            Next::Damage(e) => failures.tell(path, e)?,
        }
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut rows, mut folders) = (Vec::with_capacity(names.len()), Vec::new());
    for (name, attr) in names {
        let mut text = shown(&name);
        if let Some(attr) = attr.filter(|a| a.kind == FileType::Symlink) {
            match fs.readlink(attr.ino) {
                Ok(target) => text = format!("{text} -> {}", shown(&target)),
                Err(e) => {
                    failures.tell(&joined(path, &name), e)?;
                    text.push_str(" -> ?");
                }
            }
        }
        rows.push((attr, text));
        if let Some(attr) = attr.filter(|a| a.kind == FileType::Directory) {
            folders.push((name, attr));
        }
    }
    Ok((rows, folders))
}

/// Lists a folder, then those below it, the way `ls -R` goes: depth first, by name.
fn list_tree(
    fs: &dyn FileSystem,
    (start, path): (&Attr, &[u8]),
    listing: &dyn Fn(&Attr) -> Listing,
    out: &mut dyn Write,
    failures: &mut Failures,
) -> Result<()> {
    let mut show = |path: &[u8], attr: &Attr, first: bool, failures: &mut Failures| {
        if !first {
            writeln!(out)?;
        }
        writeln!(out, "{}:", shown(path))?;
        let (rows, mut folders) = rows_of(fs, listing(attr), path, failures)?;
        write_rows(&rows, out)?;
        folders.reverse();
        anyhow::Ok(folders)
    };
    let folders = show(path, start, true, failures)?;
    // What is kept for each folder on the way down: those in it that are still to come.
    let mut walk = Walk::new(fs, Side::Image, start, path, folders);
    while let Some(rest) = walk.here() {
        let Some((name, attr)) = rest.pop() else {
            walk.leave();
            continue;
        };
        let path = walk.path_of(&name);
        if let Err(why) = walk.check(&attr) {
            failures.say(&path, &why)?;
            continue;
        }
        let folders = show(&path, &attr, false, failures)?;
        // OK to ignore: asked just before.
        let _ = walk.enter(&name, &attr, folders);
    }
    Ok(())
}

fn write_rows(rows: &[Row], out: &mut dyn Write) -> Result<()> {
    let width = |f: &dyn Fn(&Attr) -> String| {
        rows.iter().filter_map(|(a, _)| a.as_ref()).map(|a| f(a).len()).max().unwrap_or(1)
    };
    let links = width(&|a| a.nlink.to_string());
    let user = width(&|a| a.uid.to_string());
    let group = width(&|a| a.gid.to_string());
    let size = width(&|a| a.size.to_string());
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
            a.nlink,
            a.uid,
            a.gid,
            a.size,
            time_text(a.mtime)
        )?;
    }
    Ok(())
}

fn mode_text(a: &Attr) -> String {
    let kind = match a.kind {
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
        let bits = a.mode >> (6 - 3 * i);
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (a.mode & special != 0, bits & 1 != 0) {
            (true, true) => with_x,
            (true, false) => without_x,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// UTC, as ISO 8601 to the second.
fn time_text(t: Timestamp) -> String {
    jiff::Timestamp::new(t.secs, 0)
        .map_or_else(|_| format!("@{}", t.secs), |t| t.strftime("%Y-%m-%d %H:%M:%S").to_string())
}
