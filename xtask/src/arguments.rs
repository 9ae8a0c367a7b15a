//! What every command has: the folder of the workspace, and how its arguments are taken.

use std::path::{Path, PathBuf};

/// The folder of the workspace.
pub fn root() -> PathBuf {
    // OK to unwrap: xtask lies in a folder of the workspace.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Where cargo puts what it builds.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

pub fn no_more(rest: &[String]) -> anyhow::Result<()> {
    match rest.first() {
        None => Ok(()),
        Some(arg) => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
    }
}

/// The value of an option that needs one.
pub fn value<'a>(
    option: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> anyhow::Result<&'a str> {
    let value = rest.next().map(String::as_str);
    value.ok_or_else(|| anyhow::anyhow!("{option} needs a value; see cargo xtask help"))
}
