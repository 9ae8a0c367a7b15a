//! `rm`: a file, or with `-r` a tree.

use anyhow::{Context, Result, anyhow, bail};
use steadfast_vfs::path::parent_and_name;
use steadfast_vfs::{Attr, FileSystem, FileType, FsError, Ino};

use super::failures::Failures;
use super::names::shown;
use super::walk::{Met, Side, Walk};
use crate::Outcome;

/// A folder that is being emptied.
struct Emptied {
    /// The folder above, and its name there.
    above: Ino,
    name: Vec<u8>,
    /// Failures so far when it was entered: it stays if there are more when it is left.
    failures: u64,
}

/// Removes a file, or with `recursive` a whole tree.
pub fn rm(fs: &dyn FileSystem, path: &[u8], recursive: bool) -> Result<Outcome> {
    let (dir, name) = parent_and_name(fs, path).with_context(|| shown(path))?;
    let attr = fs.lookup(dir, name).with_context(|| shown(path))?;
    if attr.kind != FileType::Directory {
        fs.unlink(dir, name).with_context(|| shown(path))?;
        return Ok(Outcome::Good);
    }
    if !recursive {
        bail!("{}: is a directory; use -r to remove it with all it holds", shown(path));
    }
    let mut failures = Failures::new(false);
    let done = own_folder(fs, dir, &attr)
        .and_then(|()| remove_tree(fs, path, (dir, name), &attr, &mut failures));
    failures.end(done, "the rest is removed")
}

/// Refuses to empty a folder under a name that is not its own: it belongs elsewhere.
fn own_folder(fs: &dyn FileSystem, above: Ino, folder: &Attr) -> Result<()> {
    let up = fs.lookup(folder.ino, b"..")?;
    if up.ino != above {
        bail!(
            "a second name of a folder that belongs elsewhere: its \"..\" is inode {}, not {}",
            up.ino.0,
            above.0
        );
    }
    Ok(())
}

fn remove_tree(
    fs: &dyn FileSystem,
    path: &[u8],
    (above, name): (Ino, &[u8]),
    start: &Attr,
    failures: &mut Failures,
) -> Result<()> {
    let here = Emptied { above, name: name.to_vec(), failures: 0 };
    let mut walk = Walk::new(fs, Side::Image, start, path, here);
    let mut dir = vec![start.ino];
    while let Some(met) = walk.next(failures)? {
        let (Met::Object { name, attr }, Some(at)) = (met, dir.last().copied()) else {
            let path = walk.path().to_vec();
            dir.pop();
            let Some((_, folder)) = walk.leave() else { break };
            if failures.count() == folder.failures {
                told(failures, &path, fs.rmdir(folder.above, &folder.name))?;
            }
            continue;
        };
        let path = walk.path_of(&name);
        if attr.kind != FileType::Directory {
            told(failures, &path, fs.unlink(at, &name))?;
            continue;
        }
        let here = Emptied { above: at, name: name.clone(), failures: failures.count() };
        let entered = walk.check(&attr).map_err(|why| anyhow!(why));
        if let Err(e) = entered.and_then(|()| own_folder(fs, at, &attr)) {
            failures.tell(&path, e)?;
            continue;
        }
        dir.push(attr.ino);
        // OK to ignore: asked just before.
        let _ = walk.enter(&name, &attr, here);
    }
    Ok(())
}

/// Tells an object that could not be removed; ends the work where nothing can be.
fn told(failures: &mut Failures, path: &[u8], done: Result<(), FsError>) -> Result<()> {
    match done {
        Ok(()) => Ok(()),
        Err(e @ FsError::ReadOnly { .. }) => {
            Err(anyhow!(e).context(shown(path)).context("nothing more is removed"))
        }
        Err(e) => failures.tell(path, e),
    }
}
