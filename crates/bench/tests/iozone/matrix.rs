//! Single and auto mode: IOzone's layout, line by line, and what the tests do.

use std::sync::Arc;
use std::time::Duration;

use steadfast_bench::iozone::matrix::{
    self, Cell, Cells, Column, InProcessTarget, Mapping, MatrixTarget, TargetError,
};
use steadfast_bench::iozone::{Options, Surroundings};
use steadfast_runtime::Sim;
use steadfast_vfs::FileSystem;

use crate::memory::{Behaviour, MemoryFs};
use crate::options;

/// Command lines with what IOzone 3.487 printed, from behind "Run began" on.
const SAMPLES: [(&str, &str); 22] = [
    ("-Raze -+w 1 -q 256k -g 1m", include_str!("samples/seed2_Raze_dedup1.txt")),
    ("-Raz -+w 1 -q 256k -g 1m", include_str!("samples/seed2_Raz_dedup1.txt")),
    ("-a -i 0 -i 1 -n 8m -g 64m -q 256k", include_str!("samples/a_cutoff_8m_64m.txt")),
    ("-a -R -i 0 -n 8m -g 64m", include_str!("samples/a_cutoff_noq.txt")),
    ("-az -i 0 -n 32m -g 32m", include_str!("samples/az_noq.txt")),
    ("-s 4m -r 64k", include_str!("samples/single_all.txt")),
    ("-s 4m -r 64k -i 0 -i 2 -i 5", include_str!("samples/single_i_each.txt")),
    ("-E -s 4m -r 64k", include_str!("samples/single_E.txt")),
    ("-N -s 4m -r 64k -i 0 -i 1", include_str!("samples/N_usec.txt")),
    ("-O -s 4m -r 64k -i 0 -i 1", include_str!("samples/O_ops.txt")),
    ("-s 1m -s 4m -r 4k -r 64k -i 0 -i 1", include_str!("samples/two_s_two_r.txt")),
    ("-+u -R -s 4m -r 64k -i 0 -i 1", include_str!("samples/cpu_u.txt")),
    ("-Q -s 1m -r 64k -i 0 -i 1", include_str!("samples/Q.txt")),
    ("-A -n 64k -g 128k", include_str!("samples/A.txt")),
    ("-a -b out.xls -n 64k -g 256k -i 0 -i 1", include_str!("samples/b_xls.txt")),
    ("-G -s 1m -r 64k -i 0", include_str!("samples/G_only.txt")),
    ("-V 85 -s 1m -r 64k -i 0 -i 1", include_str!("samples/V.txt")),
    ("-W -s 1m -r 64k -i 0 -i 1", include_str!("samples/W.txt")),
    ("-w -s 1m -r 64k -i 0", include_str!("samples/w.txt")),
    ("-w -+w 1 -s 1m -r 64k -i 0", include_str!("samples/w_dedup1.txt")),
    ("-w -+d -s 1m -r 64k -i 0", include_str!("samples/w_diag.txt")),
    ("-P 0 -s 1m -i 0", include_str!("samples/P.txt")),
];

fn slow() -> Behaviour {
    Behaviour {
        read: Duration::from_micros(300),
        write: Duration::from_micros(500),
        fsync: Duration::from_micros(800),
        ..Behaviour::default()
    }
}

/// The whole text, as it is printed cell by cell.
fn text(results: &matrix::MatrixResults) -> String {
    let (began, machine) = (results.began.clone(), results.machine.clone());
    let surroundings = Surroundings { began, machine, ..Surroundings::default() };
    let rows = results.cells.iter().map(|cell| matrix::row(&results.options, cell));
    let head = matrix::head(&results.options, &surroundings);
    head + &rows.collect::<String>() + &matrix::end(results)
}

fn simulate(options: &Options) -> matrix::MatrixResults {
    let options = options.clone();
    let run = move || {
        let surroundings = Surroundings { began: Some("now".into()), ..Surroundings::default() };
        let fs: Arc<dyn FileSystem> = MemoryFs::new(slow());
        let cells = &mut matrix::SilentWatcher;
        matrix::run(&fs, "", &options, &surroundings, (&Memory, None), cells).unwrap()
    };
    Sim::new(7).run(run).unwrap()
}

/// Mappings that are nothing but memory.
struct Memory;

impl MatrixTarget for Memory {
    fn drop_caches(&self, _file: &str) -> Result<String, TargetError> {
        Ok("forgotten".into())
    }

    fn lock(&self, file: &str, writes: bool) -> Result<Box<dyn Send>, TargetError> {
        InProcessTarget.lock(file, writes)
    }

    fn map(&self, _file: &str, len: u64, _writes: bool) -> Result<Box<dyn Mapping>, TargetError> {
        Ok(Box::new(Mapped(vec![0; len as usize])))
    }
}

struct Mapped(Vec<u8>);

impl Mapping for Mapped {
    fn read(&mut self, offset: u64, buf: &mut [u8]) {
        steadfast_runtime::sleep(Duration::from_micros(20));
        buf.copy_from_slice(&self.0[offset as usize..][..buf.len()]);
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        steadfast_runtime::sleep(Duration::from_micros(30));
        self.0[offset as usize..][..data.len()].copy_from_slice(data);
    }

    fn sync(&mut self, _offset: u64, _len: u64, _wait: bool) -> Result<(), TargetError> {
        Ok(())
    }
}

/// A row of the table by where its figures end, a line of the report without its figures, any
/// other line as it is.
fn shape(line: &str) -> String {
    let figures = |text: &str| text.chars().all(|c| c == ' ' || c == '.' || c.is_ascii_digit());
    if line.len() > 24 && figures(line) && line.trim() != "" {
        let bytes = line.as_bytes();
        let ends: Vec<String> = (0..bytes.len())
            .filter(|i| bytes[*i] != b' ' && bytes.get(i + 1).is_none_or(|b| *b == b' '))
            .map(|i| i.to_string())
            .collect();
        return format!("row of {}: {}", bytes.len(), ends.join(" "));
    }
    match line.split_once("\"  ") {
        Some((size, rest)) if line.starts_with('"') && figures(rest) => {
            let count = rest.split_whitespace().count();
            let percent = rest.contains('.');
            format!("{size}\": {count} figures, {percent}, ends in blank: {}", rest.ends_with(' '))
        }
        _ => line.to_owned(),
    }
}

/// Without what IOzone says of its own clock.
fn lines(text: &str) -> Vec<String> {
    let text = text.replace("0.000001 seconds", "0.000000001 seconds");
    let clock = ["Timer resolution is poor", "reported inaccurate results"];
    let kept = text.lines().filter(|l| !clock.iter().any(|c| l.starts_with(c)));
    kept.map(shape).collect()
}

fn compare(line: &str, sample: &str) {
    let text = text(&simulate(&options(line)));
    let (_, ours) = text.split_once("Run began: now\n").unwrap();
    let (ours, theirs) = (lines(ours), lines(sample));
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(a, b, "line {i} of {line}");
    }
    assert_eq!(ours.len(), theirs.len(), "{line}");
}

/// File and record of each cell, in kB.
fn cells(line: &str) -> Vec<(u64, u64)> {
    let o = options(line);
    let cells = o.matrix.as_ref().unwrap().cells(o.file_bytes, o.record_bytes);
    cells.into_iter().map(|(file, record)| (file >> 10, record >> 10)).collect()
}

/// The same of a table's rows.
fn rows(text: &str) -> Vec<(u64, u64)> {
    let numbers = |line: &str| -> Option<(u64, u64)> {
        let mut words = line.starts_with("        ").then(|| line.split_whitespace())?;
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(numbers).collect()
}

#[test]
fn every_sample_is_the_same_in_form() {
    for (line, sample) in SAMPLES {
        // Files of 64 MB take long to write: only which cells there are.
        if line.contains("-n ")
            && line.contains('m')
            && std::env::var_os("STEADFAST_SOAK").is_none()
        {
            assert_eq!(cells(line), rows(sample), "{line}");
            continue;
        }
        // The pread columns of IOzone run into each other; ours have blanks between.
        let sample = match line.starts_with("-E") {
            true => sample.replace("1545222218280235", " 5452222 8280235"),
            false => sample.to_owned(),
        };
        compare(line, &sample);
    }
}

#[test]
fn a_mapped_file_has_no_stdio() {
    compare("-B -s 1m -r 64k", include_str!("samples/mmap_B.txt"));
}

#[test]
fn the_seeds_lines_have_all_their_cells() {
    for line in ["-Raze -+w 1 -q 16m -g 128m", "-Raz -+w 1 -q 16m -g 128m"] {
        let o = options(line);
        let cells = o.matrix.as_ref().unwrap().cells(o.file_bytes, o.record_bytes);
        assert_eq!(cells.len(), 120, "{line}");
        assert_eq!((cells[0], cells[119]), ((64 << 10, 4 << 10), (128 << 20, 16 << 20)));
    }
}

/// A line for each option of the modes with one file: it runs, or is refused by its name.
#[test]
fn each_option_runs() {
    let before = "-s 256k -r 64k -i 0 -i 1 -i 2 -i 3 -i 4 -i 5 -i 6 -i 7";
    for more in [
        "-o",
        "-+D",
        "-I",
        "-+r",
        "-c",
        "-e -c",
        "-N",
        "-O",
        "-E",
        "-i 11 -i 12",
        "-H 4",
        "-k 8",
        "-B -D",
        "-D",
        "-B -G",
        "-B -Z",
        "-J 3",
        "-K",
        "-W",
        "-V 85",
        "-+d",
        "-+n",
        "-+N",
        "-j 3",
        "-+w 50",
        "-+w 50 -+y 50 -+C 20",
        "-R -+u",
        "-Q",
        "-w",
        "-M",
        "-S 64 -L 64",
        "-z",
        "--repeat 3",
        "--drop-caches",
        "-f other",
    ] {
        let results = simulate(&options(&format!("{before} {more}")));
        let cell = &results.cells[0];
        assert!(cell.measures.len() >= 9, "{more}");
        for measure in &cell.measures {
            let figure = measure.figure(cell.record_bytes, &results.options);
            assert!(figure > 0, "{more}: {:?}", measure.column);
            assert!(!measure.runs[0].latency.is_empty(), "{more}: {:?}", measure.column);
        }
        assert_eq!(cell.measures[0].runs[0].bytes, 256 << 10, "{more}");
    }
}

/// Four records of 500 us, one by one and four at a time; a microsecond of processor a call.
#[test]
fn requests_are_in_flight_together() {
    let time = |line: &str| {
        let results = simulate(&options(&format!("-s 256k -r 64k -i 0 {line}")));
        results.cells[0].measure(Column::Rewrite).unwrap().runs[0].elapsed_ns / 1000
    };
    assert_eq!((time(""), time("-k 4")), (2004, 501));
    // Computing is not in the time.
    assert_eq!(time("-J 20"), 2004);
}

#[test]
fn repeats_have_intervals_and_resumed_cells_are_not_run() {
    struct Known(Vec<bool>);
    impl Cells for Known {
        fn known(&self, file_bytes: u64, record_bytes: u64) -> Option<Cell> {
            let measures = Vec::new();
            (record_bytes == 8 << 10).then_some(Cell { file_bytes, record_bytes, measures })
        }
        fn done(&mut self, _cell: &Cell, known: bool) {
            self.0.push(known);
        }
    }
    let o = options("-a -g 64k -i 0 --repeat 2");
    let seen = Sim::new(1).run(move || {
        let fs: Arc<dyn FileSystem> = MemoryFs::new(slow());
        let mut known = Known(Vec::new());
        let s = Surroundings::default();
        let results = matrix::run(&fs, "", &o, &s, (&InProcessTarget, None), &mut known).unwrap();
        let text = text(&results);
        let (_, intervals) = text.split_once("95 % confidence intervals").unwrap();
        assert!(intervals.contains(" 0.0"), "{text}");
        known.0
    });
    assert_eq!(seen.unwrap(), [false, true, false, false, false]);
}

#[test]
fn the_spreadsheet_begins_and_ends_as_biff2() {
    let sheet = matrix::spreadsheet(&simulate(&options("-a -g 128k -i 0 -b x.xls")));
    assert_eq!(&sheet[..8], [9, 0, 4, 0, 2, 0, 16, 0]);
    assert_eq!(&sheet[sheet.len() - 4..], [10, 0, 0, 0]);
    // Every record's length leads to the next.
    let mut at = 0;
    while at < sheet.len() {
        at += 4 + usize::from(u16::from_le_bytes([sheet[at + 2], sheet[at + 3]]));
    }
    assert_eq!(at, sheet.len());
}
