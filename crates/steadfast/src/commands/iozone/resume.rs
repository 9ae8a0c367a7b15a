//! Rows as they come, and cells that are kept for a run that is broken off (`--resume`).

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use anyhow::{Context, Result};
use steadfast_bench::iozone::matrix::{self, Cell, Cells};
use steadfast_bench::iozone::options::Matrix;
use steadfast_bench::iozone::{Options, Surroundings};
use steadfast_vfs::{bounded, size};

use crate::{Usage, output, terminal};

/// Bytes of a file of cells, at most.
const RESUME_MAX: u64 = 64 << 20;

/// Where the rows of the table are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// In IOzone's layout, each when it is there.
    AsTheyCome,
    /// What they say is in the answer, at the end.
    InTheAnswer,
    /// The JSON has them.
    Nowhere,
}

/// Prints each row, keeps each cell.
pub struct Progress {
    options: Options,
    rows: Rows,
    /// On a terminal that does not get the rows; how many cells are done, and of how many.
    bar: Option<(terminal::Progress, usize, usize)>,
    known: Vec<Cell>,
    file: Option<File>,
    failed: Option<std::io::Error>,
}

/// The command line without what may differ between two parts of one run.
fn key(options: &Options) -> String {
    let words: Vec<&str> = options.command_line.split(' ').collect();
    let mut kept = Vec::new();
    let mut skip = false;
    for word in words {
        match word {
            _ if skip => skip = false,
            "--resume" | "--json" => skip = true,
            w if w.starts_with("--resume=") || w.starts_with("--json=") => {}
            w => kept.push(w),
        }
    }
    kept.join(" ")
}

impl Progress {
    /// Reads what is known, prints the header.
    pub fn new(
        options: &Options,
        plan: &Matrix,
        surroundings: &Surroundings,
        rows: Rows,
    ) -> Result<Progress> {
        let mut progress = Progress {
            options: options.clone(),
            rows,
            bar: None,
            known: Vec::new(),
            file: None,
            failed: None,
        };
        if let Some(path) = &plan.resume {
            progress.open(path)?;
        }
        progress.show(&matrix::head(options, surroundings));
        let cells = plan.cells(options.file_bytes, options.record_bytes).len();
        progress.bar = (rows == Rows::InTheAnswer).then(|| (terminal::Progress::start(), 0, cells));
        Ok(progress)
    }

    /// The first line is the command line; each other one is a cell. A last line that was not
    /// written to its end is cut off.
    fn open(&mut self, path: &str) -> Result<()> {
        let about = || format!("--resume {path}");
        let mut how = File::options();
        let file = how.read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(|e| Usage(format!("iozone: {}: {e}", about())))?;
        if !file.metadata().with_context(about)?.is_file() {
            usage!("iozone: --resume {path}: is not a regular file; name one");
        }
        let text = bounded::text(path.as_ref(), RESUME_MAX).with_context(about)?;
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut lines = whole.lines();
        let key = key(&self.options);
        match lines.next() {
            Some(line) if line != key => {
                usage!("iozone: --resume {path}: it is of another run: {line}");
            }
            Some(_) => {}
            None => writeln!(file, "{key}").with_context(about)?,
        }
        for line in lines {
            self.known.push(serde_json::from_str(line).with_context(about)?);
        }
        let end = (whole.len() as u64).max(file.stream_position()?);
        file.set_len(end).with_context(about)?;
        file.seek(SeekFrom::Start(end)).with_context(about)?;
        self.file = Some(file);
        Ok(())
    }

    fn show(&mut self, text: &str) {
        if self.rows != Rows::AsTheyCome {
            return;
        }
        let mut out = std::io::stdout();
        if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.failed.get_or_insert(output::named(e));
        }
    }

    /// Whether all could be written.
    pub fn finish(self) -> Result<()> {
        if let Some((bar, ..)) = self.bar {
            bar.finish();
        }
        self.failed.map_or(Ok(()), |e| Err(e.into()))
    }
}

impl Cells for Progress {
    fn known(&self, file_bytes: u64, record_bytes: u64) -> Option<Cell> {
        let is = |c: &&Cell| (c.file_bytes, c.record_bytes) == (file_bytes, record_bytes);
        self.known.iter().find(is).cloned()
    }

    fn done(&mut self, cell: &Cell, known: bool) {
        self.show(&matrix::row(&self.options, cell));
        if let Some((bar, done, of)) = &mut self.bar {
            *done += 1;
            let (file, record) = (size::shown(cell.file_bytes), size::shown(cell.record_bytes));
            let what = format!("file of {file}, records of {record}");
            bar.set(*done as f64 / (*of).max(1) as f64, &what);
        }
        let Some(file) = self.file.as_mut().filter(|_| !known) else { return };
        let line = serde_json::to_string(cell).map_err(std::io::Error::other);
        let written = line.and_then(|line| writeln!(file, "{line}"));
        if let Err(e) = written {
            self.failed.get_or_insert(e);
        }
    }
}
