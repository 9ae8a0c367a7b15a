//! Real programs on a mounted folder, each with a check of its own: git, sqlite3, tar, cargo, fio.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::program::run_ok;
use crate::{Result, SuiteError};

/// Longest that one call of a program may take.
const LIMIT: Duration = Duration::from_secs(300);

/// A program's test: its name, and what it does with an empty folder on the mount. The second
/// folder is the workspace's, of whose repository git makes a clone.
pub type ProgramTest = (&'static str, fn(&Path, &Path) -> Result<()>);

/// All of them.
pub const PROGRAMS: [ProgramTest; 8] = [
    ("git", git),
    ("sqlite3 with a rollback journal", sqlite_rollback),
    ("sqlite3 with a write-ahead log", sqlite_wal),
    ("tar", tar),
    ("cargo", cargo),
    ("fio, buffered", fio_buffered),
    ("fio, direct", fio_direct),
    ("fio, mapped", fio_mapped),
];

fn wrong(what: impl Into<String>) -> SuiteError {
    SuiteError::Target(what.into())
}

/// Clones the project itself, changes it, packs it, and has git look at every object.
fn git(folder: &Path, workspace: &Path) -> Result<()> {
    let clone = folder.join("clone");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@b"]);
        git.args(["-c", "gc.auto=0", "-c", "commit.gpgsign=false"]);
        run_ok(LIMIT, git.arg("-C").arg(&clone).args(args))
    };
    let mut cloning = Command::new("git");
    cloning.args(["-c", "safe.directory=*", "clone", "--quiet", "--no-local"]);
    run_ok(LIMIT, cloning.arg(workspace).arg(&clone))?;
    git(&["fsck", "--full", "--strict"])?;
    let changes = git(&["status", "--porcelain"])?;
    if !changes.is_empty() {
        return Err(wrong(format!("git sees changes in a fresh clone:\n{changes}")));
    }
    git(&["checkout", "--quiet", "-B", "work"])?;
    for i in 0..5 {
        let file = clone.join(format!("file{i}"));
        fs::write(&file, format!("content {i}\n").repeat(1000)).map_err(SuiteError::host(&file))?;
        git(&["add", "."])?;
        git(&["commit", "--quiet", "-m", &format!("change {i}")])?;
    }
    git(&["gc", "--quiet", "--prune=now"])?;
    git(&["fsck", "--full", "--strict"])?;
    let changes = git(&["status", "--porcelain"])?;
    if changes.is_empty() { Ok(()) } else { Err(wrong(format!("git sees changes:\n{changes}"))) }
}

fn sqlite_rollback(folder: &Path, _workspace: &Path) -> Result<()> {
    sqlite(folder, "delete")
}

fn sqlite_wal(folder: &Path, _workspace: &Path) -> Result<()> {
    sqlite(folder, "wal")
}

/// Two processes fill a table in small transactions, a third changes it; then the data base
/// checks itself.
fn sqlite(folder: &Path, mode: &str) -> Result<()> {
    let base = folder.join("base");
    let sql = |script: &str| {
        let mut sqlite = Command::new("sqlite3");
        run_ok(LIMIT, sqlite.args(["-bail", "-cmd", ".timeout 60000"]).arg(&base).arg(script))
    };
    let set = sql(&format!(
        "pragma journal_mode={mode}; create table t(id integer primary key, who int, what blob); \
         create index i on t(who);"
    ))?;
    if set.trim() != mode {
        return Err(wrong(format!("sqlite3 keeps its journal as '{}', not {mode}", set.trim())));
    }
    let fill = |who: u32| {
        let one = format!(
            "begin immediate; insert into t(who, what) select {who}, randomblob(200) from \
             (with recursive n(i) as (select 1 union all select i+1 from n where i<100) \
             select i from n); commit;"
        );
        sql(&one.repeat(15))
    };
    std::thread::scope(|scope| {
        let both = [1, 2].map(|who| scope.spawn(move || fill(who)));
        for filling in both {
            match filling.join() {
                Ok(done) => done?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
        }
        Ok::<(), SuiteError>(())
    })?;
    sql("begin; update t set what=randomblob(3000) where id%7=0; delete from t where id%5=0; \
         rollback; begin; delete from t where id%3=0; commit; vacuum;")?;
    let found =
        sql("pragma integrity_check; select count(*) from t; select sum(length(what)) from t;")?;
    // 2 * 15 * 100 rows, a third of them gone.
    match found.split_whitespace().collect::<Vec<_>>()[..] {
        ["ok", "2000", "400000"] => Ok(()),
        _ => Err(wrong(format!("the data base is not as it should be: {found}"))),
    }
}

/// As many files as the kernel's headers have, out of an archive and into one again.
fn tar(folder: &Path, _workspace: &Path) -> Result<()> {
    let host = tempfile::tempdir().map_err(SuiteError::host("a folder for temporary files"))?;
    let tree = host.path().join("tree");
    header_tree(&tree, 6000).map_err(SuiteError::host(&tree))?;
    let archive = host.path().join("tree.tar");
    let pack = |from: &Path, to: &Path| {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--format=posix", "--pax-option=delete=atime,delete=ctime"]);
        run_ok(LIMIT, tar.arg("-cf").arg(to).arg("-C").arg(from).arg("tree"))
    };
    pack(host.path(), &archive)?;
    run_ok(LIMIT, Command::new("tar").arg("-xpf").arg(&archive).arg("-C").arg(folder))?;
    let mut diff = Command::new("diff");
    run_ok(LIMIT, diff.args(["-r", "--no-dereference"]).arg(&tree).arg(folder.join("tree")))?;
    let again = host.path().join("again.tar");
    pack(folder, &again)?;
    // Names, modes, owners, times to the nanosecond, links and contents.
    run_ok(LIMIT, Command::new("cmp").arg(&archive).arg(&again))?;
    let on_mount = folder.join("tree");
    fs::remove_dir_all(&on_mount).map_err(SuiteError::host(&on_mount))
}

/// Folders of files whose sizes are as those of C headers, with some links.
pub(crate) fn header_tree(tree: &Path, files: usize) -> std::io::Result<()> {
    for i in 0..files {
        let folder = tree.join(format!("include/part{:02}/arch{:02}", i % 40, i / 40 % 15));
        fs::create_dir_all(&folder)?;
        let name = folder.join(format!("header-{i}.h"));
        let lines = [3, 20, 60, 150, 400][i * 7 % 5] + i % 13;
        let line = format!("#define SOMETHING_{i} (something_else({}) + {i})\n", i * 31 % 977);
        fs::write(&name, line.repeat(lines))?;
        match i % 50 {
            7 => symlink(format!("header-{i}.h"), folder.join(format!("link-{i}.h")))?,
            13 => fs::hard_link(&name, folder.join(format!("other-{i}.h")))?,
            _ => {}
        }
    }
    Ok(())
}

/// Builds and runs a small crate, twice.
fn cargo(folder: &Path, _workspace: &Path) -> Result<()> {
    let source = folder.join("small/src");
    let write = |name: &str, text: &str| {
        let path = source.join(name);
        fs::write(&path, text).map_err(SuiteError::host(path))
    };
    fs::create_dir_all(&source).map_err(SuiteError::host(&source))?;
    write("../Cargo.toml", "[package]\nname = \"small\"\nedition = \"2021\"\n\n[workspace]\n")?;
    write("lib.rs", "pub mod greet;\n")?;
    write("greet.rs", "pub fn greet(n: u32) -> String {\n    format!(\"hello {n}\")\n}\n")?;
    let build = |n: u32| {
        write(
            "main.rs",
            &format!("fn main() {{\n    println!(\"{{}}\", small::greet::greet({n}));\n}}\n"),
        )?;
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["run", "--quiet", "--offline"]).current_dir(folder.join("small"));
        // Of the project around us nothing may come in.
        for name in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"] {
            cargo.env_remove(name);
        }
        run_ok(LIMIT, &mut cargo)
    };
    for n in [1, 2] {
        let said = build(n)?;
        if said.trim() != format!("hello {n}") {
            return Err(wrong(format!("the program built says '{said}'")));
        }
    }
    Ok(())
}

fn fio_buffered(folder: &Path, _workspace: &Path) -> Result<()> {
    fio(folder, &["--ioengine=psync", "--rw=randrw", "--fallocate=native", "--fsync=100"])
}

fn fio_direct(folder: &Path, _workspace: &Path) -> Result<()> {
    fio(folder, &["--ioengine=libaio", "--iodepth=8", "--direct=1", "--rw=randwrite"])
}

fn fio_mapped(folder: &Path, _workspace: &Path) -> Result<()> {
    fio(folder, &["--ioengine=mmap", "--rw=randwrite", "--fallocate=none"])
}

/// fio with a checksum in each block, read again at the end.
fn fio(folder: &Path, how: &[&str]) -> Result<()> {
    let mut fio = Command::new("fio");
    fio.args(["--name=verify", "--size=16m", "--numjobs=2", "--group_reporting", "--thread"]);
    fio.args(["--bsrange=4k-64k", "--blockalign=4k", "--verify=crc32c", "--do_verify=1"]);
    fio.args(["--verify_fatal=1", "--verify_state_save=0", "--randseed=1", "--eta=never"]);
    // What fio leaves beside its files belongs into the folder too.
    fio.arg("--directory").arg(folder).args(how).current_dir(folder);
    run_ok(LIMIT, &mut fio).map(drop)
}
