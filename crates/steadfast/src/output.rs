//! The standard output of the program: every command writes to it by way of [`Output`] alone.

use std::io::{self, ErrorKind, Write};

/// The standard output cannot take what was printed: its disk is full, for example.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
pub struct OutputError(#[source] io::Error);

/// An error of the standard output, by its name. That nobody reads is none, and stays as it is.
pub fn named(e: io::Error) -> io::Error {
    match e.kind() {
        ErrorKind::BrokenPipe | ErrorKind::Interrupted => e,
        kind => io::Error::new(kind, OutputError(e)),
    }
}

/// Whether an error is one of the standard output. Nothing is known to be wrong with what was
/// looked at.
pub fn is_unwritten(e: &(dyn std::error::Error + 'static)) -> bool {
    let e = e.downcast_ref().and_then(io::Error::get_ref);
    e.is_some_and(|e| e.is::<OutputError>())
}

/// An output that names its errors and keeps the first one: whoever prints may let it pass, the
/// exit status may not.
pub struct Output<W> {
    next: W,
    /// Whether anything was printed: an error becomes a document only if nothing was printed
    /// before it.
    pub any: bool,
    failed: Option<(ErrorKind, String)>,
}

impl<W> Output<W> {
    /// Before `next`.
    pub fn new(next: W) -> Self {
        Output { next, any: false, failed: None }
    }

    /// Whether all was written.
    ///
    /// # Errors
    /// The first error, by its name.
    pub fn whole(&self) -> io::Result<()> {
        match &self.failed {
            None => Ok(()),
            Some((kind, text)) => Err(named(io::Error::new(*kind, text.clone()))),
        }
    }

    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|e| {
            if !matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) {
                self.failed.get_or_insert_with(|| (e.kind(), e.to_string()));
            }
            named(e)
        })
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.any |= !bytes.is_empty();
        let done = self.next.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.next.flush();
        self.noted(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Whoever prints does not look, or says something about it.
    #[test]
    fn what_could_not_be_written_is_not_forgotten() {
        let mut out = Output::new(Failing(ErrorKind::StorageFull));
        assert!(out.whole().is_ok());
        let e = anyhow::Error::from(out.write(b"text").unwrap_err()).context("a table");
        assert!(e.chain().any(is_unwritten) && format!("{e:#}").contains("standard output: "));
        assert!(out.flush().is_ok());
        assert!(out.any && is_unwritten(&out.whole().unwrap_err()));
        let mut out = Output::new(Failing(ErrorKind::BrokenPipe));
        assert_eq!(out.write(b"text").unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!(out.whole().is_ok());
    }
}
