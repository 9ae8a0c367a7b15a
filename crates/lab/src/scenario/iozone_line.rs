//! Command lines of IOzone's as a scenario has them.

use steadfast_bench::iozone::matrix::Column;
use steadfast_bench::iozone::{self, Test};
use steadfast_vfs::size;

use super::line_error::LineError;

/// The names of all tests.
pub(super) fn test_names() -> impl Iterator<Item = &'static str> {
    Test::all().map(Test::name).chain(Column::all().map(Column::name))
}

/// What a command line of IOzone's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IozoneMode {
    /// Many children.
    Throughput,
    /// Single and auto mode: a matrix of sizes.
    Matrix,
}

/// The mode of a command line; of one that is wrong, throughput mode.
pub(crate) fn mode_of(line: &str) -> IozoneMode {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match iozone::parse(&words) {
        Ok(iozone::CommandLine::Run(options)) if options.matrix.is_some() => IozoneMode::Matrix,
        _ => IozoneMode::Throughput,
    }
}

/// IOzone's options of a command line of throughput mode, with another size if there is one.
pub(crate) fn iozone_options(line: &str, size: Option<&str>) -> Result<iozone::Options, LineError> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if let Some(text) = size {
        size::parse(text).map_err(|why| LineError::Size { size: text.to_owned(), why })?;
        replace_size(&mut words, text);
    }
    match iozone::parse(&words) {
        Ok(iozone::CommandLine::Run(options)) if options.matrix.is_some() => {
            Err(LineError::MatrixForOneSize)
        }
        Ok(iozone::CommandLine::Run(options)) => Ok(*options),
        Ok(_) => Err(LineError::HelpForOneSize),
        Err(why) => Err(match size {
            Some(text) => LineError::IozoneOfSize { size: text.to_owned(), why },
            None => LineError::Throughput(why),
        }),
    }
}

/// Puts `size` in the place of the value of `-s`, or adds it.
fn replace_size(words: &mut Vec<String>, size: &str) {
    for i in 0..words.len() {
        if words[i] == "-s" && i + 1 < words.len() {
            size.clone_into(&mut words[i + 1]);
            return;
        }
        if words[i].starts_with("-s") && words[i].len() > 2 {
            words[i] = format!("-s{size}");
            return;
        }
    }
    words.extend(["-s".to_owned(), size.to_owned()]);
}

/// IOzone's options of a command line of single or auto mode.
pub(crate) fn matrix_options(line: &str) -> Result<iozone::Options, LineError> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let options = match iozone::parse(&words).map_err(LineError::Matrix)? {
        iozone::CommandLine::Run(options) => *options,
        _ => return Err(LineError::HelpForMatrix),
    };
    let Some(m) = &options.matrix else {
        return Err(LineError::OneSizeForMatrix);
    };
    let refused = [
        (m.mapped.is_some(), "-B, -D", "a variant's file system has no mappings in process"),
        (m.depth.is_some(), "-H, -k", "of calls under way at once no cut can be judged"),
        (m.drop_caches, "--drop-caches", "a variant's cache is not dropped"),
        (m.resume.is_some(), "--resume", "a simulated run begins anew"),
        (m.write_telemetry.is_some(), "-X", "a scenario reads no other files"),
        (m.read_telemetry.is_some(), "-Y", "a scenario reads no other files"),
        (options.latency_files, "-Q", "a scenario writes no other files"),
        (options.spreadsheet.is_some(), "-b", "a scenario writes no other files"),
        (options.json.is_some(), "--json", "`lab run --json` has every cell"),
        (options.cpu_use, "-+u", "it is of this process, not of the simulated machine"),
        (options.processor.is_some(), "-P", "it is of this machine, not of the simulated one"),
    ];
    match refused.iter().find(|(given, ..)| *given) {
        Some((_, option, why)) => Err(LineError::NotForScenario { option, why }),
        None => Ok(options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_replaced_in_either_form() {
        for (line, want) in
            [("-t3 -s 4g -I", "-t3 -s 1m -I"), ("-s4g -I", "-s1m -I"), ("-I", "-I -s 1m")]
        {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            replace_size(&mut words, "1m");
            assert_eq!(words.join(" "), want);
        }
    }
}
