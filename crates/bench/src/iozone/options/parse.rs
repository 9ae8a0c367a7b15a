//! Options into [`Options`], with IOzone's header lines and its checks.

use super::getopt::{Word, Words, unknown};
use super::size::{bytes, number};
use super::{BannerLine, CHILDREN_MAX, Options, RECORD_BYTES_MAX, UsageError};

/// The random tests keep their order in memory: eight bytes a record.
const RECORDS_MAX: u64 = 1 << 28;

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// A run.
    Run(Box<Options>),
    /// -h.
    Help,
    /// -v.
    Version,
}

/// Reads a command line, without the program's own name.
pub fn parse(args: &[String]) -> Result<Parsed, UsageError> {
    let mut reader = Reader { options: Options::default(), ..Reader::default() };
    let mut words = Words::new(args);
    while let Some(word) = words.option()? {
        match word.name.as_str() {
            "-h" => return Ok(Parsed::Help),
            "-v" => return Ok(Parsed::Version),
            _ => reader.option(&word, &mut words)?,
        }
    }
    let mut options = reader.finish()?;
    options.command_line = std::iter::once("iozone")
        .chain(args.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(" ");
    Ok(Parsed::Run(Box::new(options)))
}

/// Why an option cannot be combined with -t, and IOzone's own words for it where it has some.
const AUTO_AND_THROUGHPUT: &str = "Can not mix throughput mode and auto-mode flags";

/// Options of IOzone that we do not run, and what they are. Those that only auto mode knows are
/// in [`AUTO_ONLY`].
const NOT_DONE: [(&str, &str); 41] = [
    ("-B", "mmap"),
    ("-D", "mmap with MS_ASYNC"),
    ("-G", "mmap with MS_SYNC"),
    ("-H", "POSIX asynchronous I/O"),
    ("-k", "POSIX asynchronous I/O without copies"),
    ("-J", "computing before each operation"),
    ("-K", "disrupted reads"),
    ("-P", "binding to processors"),
    ("-Q", "offset and latency files (see --json for percentiles)"),
    ("-V", "a pattern of one byte (see -+d to check all data)"),
    ("-W", "file locks"),
    ("-X", "write telemetry"),
    ("-Y", "read telemetry"),
    ("-Z", "mmap and file I/O mixed"),
    ("-b", "a spreadsheet file (see --json)"),
    ("-m", "several buffers"),
    ("-p", "purging the processor cache"),
    ("-+A", "madvise"),
    ("-+C", "dedup within a file"),
    ("-+E", "an existing file, read only"),
    ("-+F", "truncation in the mixed test"),
    ("-+H", "a time server"),
    ("-+J", "think time"),
    ("-+L", "record locks on a shared file"),
    ("-+M", "dedup and compression"),
    ("-+O", "a rate of operations"),
    ("-+P", "a time server's port"),
    ("-+Q", "dedup granules"),
    ("-+R", "names from a file (see -F)"),
    ("-+S", "a dedup seed"),
    ("-+T", "time stamps"),
    ("-+V", "one file for all children"),
    ("-+W", "a dedup skew"),
    ("-+X", "short circuit"),
    ("-+Z", "old data sets"),
    ("-+a", "zeros in the data"),
    ("-+b", "bursts"),
    ("-+l", "record locks"),
    ("-+r", "synchronised reads"),
    ("-+u", "processor use"),
    ("-+y", "dedup within and across files"),
];

/// More of the same: other programs' parts, and what needs another mode first.
const NOT_DONE_MODES: [(&str, &str); 10] = [
    ("-+c", "distributed clients"),
    ("-+h", "distributed clients"),
    ("-+i", "distributed clients"),
    ("-+k", "a constant aggregate size"),
    ("-+m", "distributed clients"),
    ("-+s", "silence"),
    ("-+t", "the network test"),
    ("-+w", "dedup across files"),
    ("-+x", "a multiplier for sizes in auto mode"),
    ("-+z", "histograms (see --json for percentiles)"),
];

/// Options that mean auto mode.
const AUTO_ONLY: [&str; 6] = ["-a", "-A", "-n", "-g", "-y", "-q"];

#[derive(Default)]
struct Reader {
    options: Options,
    /// Given with -t, in order.
    children: Vec<usize>,
    lower: Option<usize>,
    upper: Option<usize>,
    /// The first option that means auto mode.
    auto: Option<String>,
    /// -N was given.
    microseconds: bool,
    sizes: u32,
    records: u32,
    base: Option<String>,
}

impl Reader {
    fn say(&mut self, line: impl Into<String>) {
        self.options.banner.push(BannerLine::Text(line.into()));
    }

    fn option(&mut self, word: &Word, words: &mut Words<'_>) -> Result<(), UsageError> {
        let name = word.name.as_str();
        if self.switch(name) {
            return Ok(());
        }
        if AUTO_ONLY.contains(&name) {
            self.auto.get_or_insert_with(|| name.to_owned());
            return Ok(());
        }
        let not_done = NOT_DONE.iter().chain(&NOT_DONE_MODES).find(|(n, _)| *n == name);
        if let Some((_, what)) = not_done {
            let message = format!("{name} ({what}) is not implemented; leave it out");
            return Err(UsageError::new(255, message));
        }
        self.operand(name, &word.operand, words)
    }

    /// Options without an operand; false if `name` is none of them.
    fn switch(&mut self, name: &str) -> bool {
        let o = &mut self.options;
        let line = match name {
            "-M" => {
                o.banner.push(BannerLine::Machine);
                return true;
            }
            "-o" => set(&mut o.sync, "SYNC Mode. "),
            "-c" => set(&mut o.include_close, "Include close in write timing"),
            "-e" => set(&mut o.include_fsync, "Include fsync in write timing"),
            "-I" => set(&mut o.direct, "O_DIRECT feature enabled"),
            "-O" => set(&mut o.ops, "OPS Mode. Output is in operations per second."),
            "-R" => set(&mut o.report, "Excel chart generation enabled"),
            "-w" => set(&mut o.keep_files, "Setting no_unlink"),
            "-x" => {
                o.stonewall = false;
                "Stonewall disabled"
            }
            "-z" => "Cross over of record size disabled.",
            "-N" => set(
                &mut self.microseconds,
                "Microseconds/op Mode. Output is in microseconds per operation.",
            ),
            "-T" => set(&mut o.threads, ""),
            "-C" => set(&mut o.child_lines, ""),
            // Pread and pwrite are always part of throughput mode.
            "-E" => "",
            "-+n" => set(&mut o.no_retest, "No retest option selected"),
            "-+N" => set(&mut o.no_truncate, ""),
            "-+D" => set(&mut o.dsync, ">>> O_DSYNC mode enabled. <<<"),
            "-+B" => set(&mut o.mixed_sequential, ">>> Sequential Mixed workload. <<<"),
            "-+d" => {
                o.verify = true;
                self.say(">>> I/O Diagnostic mode enabled. <<<");
                "Performance measurements are invalid in this mode."
            }
            _ => return false,
        };
        if !line.is_empty() {
            self.say(line);
        }
        true
    }

    /// Options with an operand.
    fn operand(&mut self, name: &str, text: &str, words: &mut Words<'_>) -> Result<(), UsageError> {
        let many = CHILDREN_MAX as u64;
        match name {
            "-s" => {
                self.sizes += 1;
                self.options.file_bytes = bytes(name, text)?;
                self.say(format!("File size set to {} kB", self.options.file_bytes >> 10));
            }
            "-r" => self.record(name, text)?,
            "-t" => self.children.push(number(name, text, 1, many)? as usize),
            "-l" => self.lower = Some(number(name, text, 1, many)? as usize),
            "-u" => self.upper = Some(number(name, text, 1, many)? as usize),
            "-i" => self.test(name, text)?,
            "-f" => self.base = Some(text.to_owned()),
            "-F" => self.names(text, words)?,
            "-U" => {
                let message = "Can not run throughput tests with unmount & remounts";
                return Err(UsageError::new(16, message));
            }
            "-d" => self.options.start_delay_us = number(name, text, 0, 3_600_000_000)?,
            "-j" => self.options.stride = number(name, text, 1, 1 << 32)?,
            "-S" => self.options.cache_kb = number(name, text, 1, 1 << 32)?,
            "-L" => self.options.cache_line = number(name, text, 1, 1 << 32)?,
            "-+p" => {
                let percent = number(name, text, 1, 100)? as u32;
                self.options.mixed_readers_percent = Some(percent);
                self.say(format!("Percent read in mix test is {percent}"));
            }
            "-+K" => {
                self.options.mixed_readers = Some(number(name, text, 1, many)? as u32);
                self.say("Manual control of test 8. >>> Very Experimental. Sony special <<<");
            }
            "-+q" => {
                self.options.rest_s = number(name, text, 0, 86_400)?;
                self.say(format!("Delay {} seconds between tests enabled.", self.options.rest_s));
            }
            "--json" => self.options.json = Some(text.to_owned()),
            "--settle" => self.options.settle_ms = 1000 * number(name, text, 0, 86_400)?,
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    fn record(&mut self, name: &str, text: &str) -> Result<(), UsageError> {
        self.records += 1;
        let record = bytes(name, text)?;
        if record > RECORD_BYTES_MAX {
            let message = format!(
                "{name}: maximum record size {} kB is greater than maximum buffer size {} kB",
                record >> 10,
                RECORD_BYTES_MAX >> 10
            );
            return Err(UsageError::new(23, message));
        }
        self.options.record_bytes = record;
        self.say(format!("Record Size {} kB", record >> 10));
        Ok(())
    }

    fn test(&mut self, name: &str, text: &str) -> Result<(), UsageError> {
        let test = number(name, text, 0, 12)? as u8;
        let tests = self.options.tests.get_or_insert_default();
        if !tests.contains(&test) {
            tests.push(test);
        }
        Ok(())
    }

    /// -F: its own operand and the words after it are one name for each child.
    fn names(&mut self, first: &str, words: &mut Words<'_>) -> Result<(), UsageError> {
        let Some(children) = self.children.iter().copied().chain(self.upper).max() else {
            return Err(UsageError::new(12, "invalid options: must specify -t N before -F"));
        };
        let mut names = vec![first.to_owned()];
        while names.len() < children {
            let name = words.operand("-F").map_err(|_| {
                let message =
                    format!("invalid options: not enough filenames for {children} streams");
                UsageError::new(13, message)
            })?;
            names.push(name.to_owned());
        }
        for (i, name) in names.iter().enumerate() {
            if name.is_empty() || names[..i].contains(name) {
                let message = format!(
                    "-F: \"{name}\" is empty or given twice; \
                    each child needs a file of its own"
                );
                return Err(UsageError::new(13, message));
            }
        }
        self.options.files = Some(names);
        Ok(())
    }

    fn finish(mut self) -> Result<Options, UsageError> {
        let throughput = !self.children.is_empty() || self.lower.is_some() || self.upper.is_some();
        let auto = self.auto.clone().or_else(|| {
            // Several sizes of a kind make IOzone run auto mode over the list.
            (self.sizes > 1)
                .then(|| "several -s".to_owned())
                .or_else(|| (self.records > 1).then(|| "several -r".to_owned()))
        });
        match (auto, throughput) {
            (Some(option), true) => {
                let message = format!("{AUTO_AND_THROUGHPUT} ({option} means auto mode)");
                return Err(UsageError::new(17, message));
            }
            (Some(option), false) => {
                let message = format!(
                    "auto mode ({option}) is not implemented yet; \
                    give a number of children with -t for throughput mode"
                );
                return Err(UsageError::new(255, message));
            }
            (None, false) => {
                let message = "single-file mode is not implemented yet; \
                    give a number of children with -t (-t 1 for one)";
                return Err(UsageError::new(255, message));
            }
            (None, true) => {}
        }
        if self.microseconds {
            let message = "Microsecond mode (-N) not supported in throughput mode";
            return Err(UsageError::new(17, message));
        }
        self.sweep()?;
        if self.options.records() == 0 {
            let message = format!(
                "a record of {} kB (-r) is larger than the file of {} kB (-s)",
                self.options.record_bytes >> 10,
                self.options.file_bytes >> 10
            );
            return Err(UsageError::new(23, message));
        }
        if self.options.records() > RECORDS_MAX {
            let message = format!("a file of more than {RECORDS_MAX} records; choose a larger -r");
            return Err(UsageError::new(255, message));
        }
        if crate::iozone::plan::tests(&self.options).is_empty() {
            let message = "none of the selected tests is part of throughput mode: \
                test 4 (record rewrite) is not, 0 to 3 and 5 to 12 are";
            return Err(UsageError::new(255, message));
        }
        Ok(self.options)
    }

    /// Which numbers of children run, and where their files are.
    fn sweep(&mut self) -> Result<(), UsageError> {
        if self.lower.is_some() || self.upper.is_some() {
            let lower = self.lower.unwrap_or(1);
            let upper = self.upper.unwrap_or(lower).max(
                // OK: -t numbers count for the upper bound in IOzone too.
                self.children.iter().copied().max().unwrap_or(0),
            );
            if upper < lower {
                let message = format!("-l {lower} is more than -u {upper}");
                return Err(UsageError::new(255, message));
            }
            self.options.sweep = Some((lower, upper));
            self.options.children = (lower..=upper).collect();
        }
        if !self.children.is_empty() {
            self.options.children = self.children.clone();
        }
        if let Some(base) = self.base.take() {
            if self.options.files.is_some() {
                let message = "invalid options: -f and -F are mutually exclusive";
                return Err(UsageError::new(10, message));
            }
            self.options.base = base;
        }
        let most = self.options.children.iter().copied().max().unwrap_or(1);
        if self.options.files.as_ref().is_some_and(|files| files.len() < most) {
            let message = format!("invalid options: not enough filenames for {most} streams");
            return Err(UsageError::new(13, message));
        }
        Ok(())
    }
}

fn set(flag: &mut bool, line: &'static str) -> &'static str {
    *flag = true;
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Options, UsageError> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&args)? {
            Parsed::Run(options) => Ok(*options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_published_command_line() {
        let line = "-M -o -c -e -t3 -T -I -s 4g -r 256k -i0 -i2 -i6 -i8 -i9 -i11";
        let o = of(line).unwrap();
        assert_eq!(o.command_line, format!("iozone {line}"));
        assert_eq!((o.file_bytes, o.record_bytes), (4 << 30, 256 << 10));
        assert_eq!(o.children, [3]);
        assert_eq!(o.tests, Some(vec![0, 2, 6, 8, 9, 11]));
        assert!(o.sync && o.include_close && o.include_fsync && o.threads && o.direct);
        assert!(o.stonewall && !o.dsync && !o.keep_files);
        assert_eq!(o.file_of(2), "iozone.DUMMY.2");
        assert_eq!(o.banner[0], BannerLine::Machine);
        assert_eq!(o.banner[1], BannerLine::Text("SYNC Mode. ".into()));
        assert_eq!(o.banner.len(), 7);
    }

    #[test]
    fn names_and_sweeps() {
        let o = of("-t 2 -F fa fb -s 1m").unwrap();
        assert_eq!(o.files, Some(vec!["fa".into(), "fb".into()]));
        assert_eq!(of("-l 1 -u 3").unwrap().children, [1, 2, 3]);
        assert_eq!(of("-u 2").unwrap().sweep, Some((1, 2)));
        assert_eq!(of("-l 4").unwrap().children, [4]);
        assert_eq!(of("-t 1 -t 4").unwrap().children, [1, 4]);
        assert_eq!(of("-t 1 -f dir/x").unwrap().file_of(0), "dir/x.DUMMY.0");
    }

    #[test]
    fn refusals_name_the_option_and_keep_iozones_status() {
        for (line, status, part) in [
            ("-a -t 2", 17, "auto-mode"),
            ("-t 2 -s 1m -s 2m", 17, "several -s"),
            ("-a", 255, "not implemented yet"),
            ("-i 0", 255, "-t 1"),
            ("-t 2 -N", 17, "-N"),
            ("-F a b -t 2", 12, "-t N before -F"),
            ("-t 3 -F a b", 13, "not enough"),
            ("-t 2 -F a a", 13, "given twice"),
            ("-t 2 -f x -F a b", 10, "mutually exclusive"),
            ("-t 1 -s 64m -r 32m", 23, "maximum record size"),
            ("-t 1 -s 64k -r 128k", 23, "larger than the file"),
            ("-t 1 -B", 255, "-B (mmap)"),
            ("-t 1 -+w 3", 255, "-+w (dedup"),
            ("-t 1 -+x 3", 255, "-+x"),
            ("-t 1 -U /mnt", 16, "unmount"),
            ("-t many", 255, "-t: \"many\""),
            ("-t 0", 255, "from 1 to 256"),
            ("-t 257", 255, "from 1 to 256"),
            ("-t 1 -s 1024g -r 1k", 255, "larger -r"),
            ("-t 1 -i 13", 255, "from 0 to 12"),
            ("-t 1 -i 4", 255, "record rewrite"),
            ("-l 3 -u 2", 255, "-l 3"),
            ("-t 1 leftover", 255, "leftover"),
            ("-t 1 -%", 255, "-%"),
            ("-t 1 -+1", 255, "-+1"),
        ] {
            let e = of(line).unwrap_err();
            assert_eq!(e.iozone_exit, status, "{line}: {e}");
            assert!(e.message.contains(part), "{line}: {e}");
        }
    }

    #[test]
    fn help_and_version_win() {
        assert_eq!(parse(&["-h".into()]), Ok(Parsed::Help));
        assert_eq!(parse(&["-Rv".into()]), Ok(Parsed::Version));
    }

    #[test]
    fn every_option_of_iozone_is_known() {
        let flags = "ZQNIBDGCTOMREWovAxamwphcezKJjkVrtsfFdluUSLHPibXYgnyq";
        for flag in flags.chars() {
            let args = ["-t".into(), "1".into(), format!("-{flag}"), "1".into()];
            if let Err(e) = parse(&args) {
                assert!(!e.message.contains("has no option"), "{flag}: {e}");
            }
        }
        for letter in "aQbFMRchmNusdxipt rAnkqDlLJVBETXZKwyCSWHPzO".replace(' ', "").chars() {
            let args = ["-t".into(), "1".into(), format!("-+{letter}"), "1".into()];
            if let Err(e) = parse(&args) {
                assert!(!e.message.contains("has no option"), "{letter}: {e}");
            }
        }
    }
}
