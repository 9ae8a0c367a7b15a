//! Another mount namespace, as a container has one, and a service with a /tmp of its own.

use std::io::{BufRead, BufReader, Result};
use std::process::{Child, Command, Stdio};

/// A process with a copy of every mount that was there when it was made. It ends when the value is
/// dropped, and its copies with it.
#[derive(Debug)]
pub struct OtherNamespace(Child);

impl OtherNamespace {
    /// Makes it: for root.
    ///
    /// # Errors
    /// There is no unshare(1), or this user may not.
    pub fn new() -> Result<OtherNamespace> {
        let mut process = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .args(["sh", "-c", "echo there; exec sleep 3600"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let other = OtherNamespace(process);
        match line.as_str() {
            "there\n" => Ok(other),
            _ => Err(std::io::Error::other("unshare --mount: not permitted")),
        }
    }

    /// The number of its process, which is called `sleep`.
    pub fn process(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for OtherNamespace {
    fn drop(&mut self) {
        // OK to ignore: it may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
