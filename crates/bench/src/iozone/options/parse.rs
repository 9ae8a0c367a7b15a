//! Options into [`Options`], with IOzone's header lines and its checks.

use super::getopt::{Word, Words, unknown};
use super::matrix::MatrixOptions;
use super::size::{bytes, number};
use super::{BannerLine, CHILDREN_MAX, Options, RECORD_BYTES_MAX, UsageError};

/// The random tests keep their order in memory: eight bytes a record.
const RECORDS_MAX: u64 = 1 << 28;

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A run.
    Run(Box<Options>),
    /// -h.
    Help,
    /// -v.
    Version,
}

/// Reads a command line, without the program's own name.
pub fn parse(args: &[String]) -> Result<CommandLine, UsageError> {
    let mut reader = Reader { options: Options::default(), ..Reader::default() };
    let mut words = Words::new(args);
    while let Some(word) = words.option()? {
        match word.name.as_str() {
            "-h" | "--help" => return Ok(CommandLine::Help),
            "-v" => return Ok(CommandLine::Version),
            _ => reader.option(&word, &mut words)?,
        }
    }
    let mut options = reader.finish()?;
    options.command_line = std::iter::once("iozone")
        .chain(args.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(" ");
    Ok(CommandLine::Run(Box::new(options)))
}

/// Options of IOzone that mean nothing here, and why.
const REFUSED: [(&str, &str); 30] = [
    ("-U", "unmounting: see --drop-caches"),
    ("-m", "several buffers: data differ from record to record anyway"),
    ("-p", "purging the processor cache: data are made anew for each write"),
    ("-+A", "madvise"),
    ("-+E", "an existing file, read only: read it with steadfast dd"),
    ("-+F", "truncation in the mixed test"),
    ("-+H", "a time server: clocks are monotonic here"),
    ("-+J", "think time: see -J"),
    ("-+L", "record locks on a shared file: children have files of their own"),
    ("-+M", "dedup and compression: see -+w"),
    ("-+O", "a rate of operations"),
    ("-+P", "a time server's port: clocks are monotonic here"),
    ("-+Q", "dedup granules: see -+w"),
    ("-+R", "names from a file: see -F"),
    ("-+S", "a dedup seed: data are the same in every run anyway"),
    ("-+T", "time stamps"),
    ("-+V", "one file for all children"),
    ("-+W", "a dedup skew"),
    ("-+X", "short circuit: for IOzone's own tests"),
    ("-+Z", "old data sets: they are nearly all zeros"),
    ("-+a", "an option that IOzone ignores"),
    ("-+b", "an option that IOzone ignores"),
    ("-+c", "distributed clients"),
    ("-+h", "distributed clients"),
    ("-+i", "distributed clients"),
    ("-+k", "a constant aggregate size: give -s"),
    ("-+l", "record locks: children have files of their own"),
    ("-+m", "distributed clients"),
    ("-+s", "silence of distributed clients"),
    ("-+t", "the network test"),
];

/// Options that mean auto mode.
const AUTO: [&str; 7] = ["-a", "-A", "-n", "-g", "-y", "-q", "-+x"];

#[derive(Default)]
struct Reader {
    options: Options,
    /// Given with -t, in order.
    children: Vec<usize>,
    lower: Option<usize>,
    upper: Option<usize>,
    given: MatrixOptions,
    base: Option<String>,
}

impl Reader {
    fn say(&mut self, line: impl Into<String>) {
        self.options.banner.push(BannerLine::Text(line.into()));
    }

    fn is_throughput(&self) -> bool {
        !self.children.is_empty() || self.lower.is_some() || self.upper.is_some()
    }

    fn option(&mut self, word: &Word, words: &mut Words<'_>) -> Result<(), UsageError> {
        let name = word.name.as_str();
        if self.switch(name) {
            return Ok(());
        }
        if let Some(line) = self.given.option(name, &word.operand)? {
            if !line.is_empty() {
                self.say(line);
            }
            if name == "-A" {
                self.options.tests.get_or_insert_default().extend([0, 1]);
            }
            return Ok(());
        }
        let throughput = self.is_throughput();
        let message = "Can not run throughput tests with unmount & remounts";
        UsageError::when(name == "-U" && throughput, 16, message)?;
        let refused = REFUSED.iter().find(|(n, _)| *n == name);
        if let Some((_, what)) = refused {
            let message = format!("{name} ({what}) has no meaning here; leave it out");
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
            "-z" => set(&mut self.given.matrix.no_cutoff, "Cross over of record size disabled."),
            "-Q" => set(&mut o.latency_files, "Offset/latency files enabled."),
            "-+r" => {
                o.sync = true;
                "Read & Write sync mode active."
            }
            "-+u" => {
                o.cpu_use = true;
                self.say("CPU utilization Resolution = 0.000 seconds.");
                "CPU utilization Excel chart enabled"
            }
            "-+z" => "Histogram summary enabled.",
            "-T" => set(&mut o.threads, ""),
            "-C" => set(&mut o.child_lines, ""),
            // Pread and pwrite are always part of throughput mode.
            "-E" => set(&mut self.given.matrix.extended, ""),
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
                self.options.file_bytes = bytes(name, text)?;
                self.given.matrix.sizes.push(self.options.file_bytes);
                self.say(format!("File size set to {} kB", self.options.file_bytes >> 10));
            }
            "-r" => {
                self.options.record_bytes = record_bytes(name, text)?;
                self.given.matrix.records.push(self.options.record_bytes);
                self.say(format!("Record Size {} kB", self.options.record_bytes >> 10));
            }
            "-t" => self.children.push(number(name, text, 1, many)? as usize),
            "-l" => self.lower = Some(number(name, text, 1, many)? as usize),
            "-u" => self.upper = Some(number(name, text, 1, many)? as usize),
            "-i" => {
                let test = number(name, text, 0, 12)? as u8;
                let tests = self.options.tests.get_or_insert_default();
                tests.extend((!tests.contains(&test)).then_some(test));
            }
            "-f" => self.base = Some(text.to_owned()),
            "-F" => self.names(text, words)?,
            "-P" => {
                let processor = number(name, text, 0, 1 << 16)? as u32;
                self.options.processor = Some(processor);
                self.say(format!("Binding of processors beginning with {processor} "));
            }
            "-V" => {
                let byte = number(name, text, 0, 255)? as u8;
                // IOzone's own, for 0.
                let byte = if byte == 0 { 0xbb } else { byte };
                self.options.pattern = Some(byte);
                self.say(format!("Verify Mode. Pattern {}", format!("{byte:x}").repeat(4)));
                self.say("Performance measurements are invalid in this mode.");
            }
            "-b" => {
                self.options.report = true;
                self.options.spreadsheet = Some(text.to_owned());
            }
            "-+w" => {
                self.options.dedup_percent = number(name, text, 0, 100)? as u32;
                self.say(format!("Dedup activated {} percent.", self.options.dedup_percent));
            }
            "-+y" => {
                let percent = number(name, text, 0, 100)? as u32;
                self.options.dedup_within_percent = percent;
                self.say(format!("Dedupe within & across {percent} percent."));
            }
            "-+C" => {
                let percent = number(name, text, 0, 100)? as u32;
                self.options.dedup_file_percent = percent;
                self.say(format!("Dedupe within {percent} percent."));
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
            let why = "is empty or given twice; each child needs a file of its own";
            let wrong = name.is_empty() || names[..i].contains(name);
            UsageError::when(wrong, 13, format!("-F: \"{name}\" {why}"))?;
        }
        self.options.files = Some(names);
        Ok(())
    }

    fn finish(mut self) -> Result<Options, UsageError> {
        self.together()?;
        if !self.is_throughput() {
            return self.matrix();
        }
        let m = &self.given.matrix;
        let auto = self.given.only_here.iter().map(String::as_str).find(|o| AUTO.contains(o));
        // Several sizes of a kind make IOzone run auto mode over the list.
        let several = |sizes: &[u64], name: &'static str| (sizes.len() > 1).then_some(name);
        let auto = auto.or(several(&m.sizes, "several -s")).or(several(&m.records, "several -r"));
        if let Some(option) = auto {
            let what = "Can not mix throughput mode and auto-mode flags";
            return Err(UsageError::new(17, format!("{what} ({option} means auto mode)")));
        }
        let message = "Microsecond mode (-N) not supported in throughput mode";
        UsageError::when(m.microseconds, 17, message)?;
        if let Some(option) = self.given.only_here.first() {
            let message = format!("{option} is for one file at a time: leave it or -t out");
            return Err(UsageError::new(255, message));
        }
        self.sweep()?;
        let (file, record) = (self.options.file_bytes, self.options.record_bytes);
        let message = format!(
            "a record of {} kB (-r) is larger than the file of {} kB (-s)",
            record >> 10,
            file >> 10
        );
        UsageError::when(file < record, 23, message)?;
        check_records(file, record)?;
        let message = "none of the selected tests is part of throughput mode: \
            test 4 (record rewrite) is not, 0 to 3 and 5 to 12 are";
        UsageError::when(crate::iozone::plan::tests(&self.options).is_empty(), 255, message)?;
        Ok(self.options)
    }

    /// What does not go together in any mode.
    fn together(&self) -> Result<(), UsageError> {
        let o = &self.options;
        let dedup = o.dedup_percent > 0;
        let shares = o.dedup_within_percent + o.dedup_file_percent;
        let message = "-+y and -+C are shares of what -+w makes the same: give it, too";
        UsageError::when(shares > 0 && !dedup, 255, message)?;
        let message = "-+y and -+C are more than all of it together";
        UsageError::when(shares > 100, 255, message)?;
        let data = [o.verify, dedup, o.pattern.is_some()];
        let message = "-+d, -V and -+w want different data: give one of them";
        UsageError::when(data.into_iter().filter(|b| *b).count() > 1, 255, message)
    }

    /// Single and auto mode.
    fn matrix(mut self) -> Result<Options, UsageError> {
        let message = "invalid options: must specify -t N before -F";
        UsageError::when(self.options.files.is_some(), 12, message)?;
        self.options.base = self.base.take().unwrap_or_else(|| "iozone.tmp".into());
        let wrong = self.options.report && self.given.matrix.microseconds;
        UsageError::when(wrong, 17, "Excel report not supported in microsecond mode (-N)")?;
        let (file, record) = (self.options.file_bytes, self.options.record_bytes);
        let matrix = std::mem::take(&mut self.given).finish(file, record)?;
        for (file, record) in matrix.cells(file, record) {
            check_records(file, record)?;
        }
        self.options.matrix = Some(matrix);
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
            let message = format!("-l {lower} is more than -u {upper}");
            UsageError::when(upper < lower, 255, message)?;
            self.options.sweep = Some((lower, upper));
            self.options.children = (lower..=upper).collect();
        }
        if !self.children.is_empty() {
            self.options.children = self.children.clone();
        }
        if self.base.is_some() {
            let (status, message) = match self.options.files {
                Some(_) => (10, "invalid options: -f and -F are mutually exclusive"),
                None => (17, "You must use -F when using multiple threads or processes."),
            };
            return Err(UsageError::new(status, message));
        }
        let most = self.options.children.iter().copied().max().unwrap_or(1);
        let few = self.options.files.as_ref().is_some_and(|files| files.len() < most);
        let message = format!("invalid options: not enough filenames for {most} streams");
        UsageError::when(few, 13, message)
    }
}

/// A record's size.
pub(super) fn record_bytes(name: &str, text: &str) -> Result<u64, UsageError> {
    let record = bytes(name, text)?;
    let message = format!(
        "{name}: maximum record size {} kB is greater than maximum buffer size {} kB",
        record >> 10,
        RECORD_BYTES_MAX >> 10
    );
    UsageError::when(record > RECORD_BYTES_MAX, 23, message)?;
    Ok(record)
}

fn check_records(file: u64, record: u64) -> Result<(), UsageError> {
    let message = format!("a file of more than {RECORDS_MAX} records; choose a larger -r");
    UsageError::when(file / record > RECORDS_MAX, 255, message)
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
            CommandLine::Run(options) => Ok(*options),
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
        let named = of("-s 1m -t 1 -F dir/x").unwrap();
        assert_eq!(named.file_of(0), "dir/x");
    }

    #[test]
    fn refusals_name_the_option_and_keep_iozones_status() {
        for (line, status, part) in [
            ("-a -t 2", 17, "auto-mode"),
            ("-t 2 -s 1m -s 2m", 17, "several -s"),
            ("-g 1m", 255, "give -a"),
            ("-s 64k -r 128k", 23, "as large as a record"),
            ("-N -R", 17, "-N"),
            ("-Z", 17, "-B"),
            ("-B -H 4", 17, "go together"),
            ("-+y 5", 255, "-+w"),
            ("-+d -V 1", 255, "different data"),
            ("-U /mnt", 255, "--drop-caches"),
            ("-m", 255, "-m (several buffers"),
            ("-t 2 -N", 17, "-N"),
            ("-F a b -t 2", 12, "-t N before -F"),
            ("-t 3 -F a b", 13, "not enough"),
            ("-t 2 -F a a", 13, "given twice"),
            ("-t 2 -f x -F a b", 10, "mutually exclusive"),
            ("-t 2 -f foo -s 1m", 17, "You must use -F when using multiple threads or processes."),
            ("-l 1 -u 2 -f foo", 17, "You must use -F"),
            ("-t 1 -s 64m -r 32m", 23, "maximum record size"),
            ("-t 1 -s 64k -r 128k", 23, "larger than the file"),
            ("-t 1 -B", 255, "-B is for one file"),
            ("-t 1 -+x 3", 17, "-+x"),
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
        assert_eq!(parse(&["-h".into()]), Ok(CommandLine::Help));
        assert_eq!(parse(&["--help".into()]), Ok(CommandLine::Help));
        assert_eq!(parse(&["-Rv".into()]), Ok(CommandLine::Version));
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
