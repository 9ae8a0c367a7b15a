//! steadfast: the command line, over the library of the same name. Glue only; the work is done in
//! the crates below.
//!
//! Exit status: 0 good, 1 a problem was found, 2 used wrongly, 3 not supported by Steadfast.

#[macro_use]
mod outcome;

mod allocator;
mod cli;
mod commands;
mod document;
mod exit_status;
mod helper;
mod mount;
mod output;
mod reproducible;
mod setup_error;
mod source_date;
mod stop_signals;
mod terminal;
mod way_out;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches;
use steadfast::FileSystem;
use steadfast_crash::program::supervisor::{SUPERVISE, supervise};

use cli::{Cli, Command, Lab};
use commands::{
    calibrate, compare, crash, dd, extents, fio, hdparm, image, iostat, iozone, journal, lab, mkfs,
    pages, pmem, sensitivity, serve, svm, sweep, top, trace, tree, validate, volume,
};
use exit_status::status_of;
pub use outcome::{CommandEnd, Unsupported, Usage};
use terminal::{Contents, Harmless};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|first| first == SUPERVISE) {
        return supervise(words);
    }
    take_file_size_limit_as_error();
    if let Err(e) = helper::fuse2fs::without_preload(&std::env::args_os().collect::<Vec<_>>()) {
        terminal::error(&e.into());
        return ExitCode::from(1);
    }
    let command = pages::command();
    let mut commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    commands.push("help");
    let words = helper::arguments(std::env::args_os().collect(), &commands);
    helper::keep(words.clone());
    let matches = match command.try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(e) => return misread(&e, &words),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(e) => return misread(&e, &words),
    };
    let wants_document = document::is_wanted(&matches);
    if let Command::Mount(_) = cli.command {
        allocator::set_up();
    }
    let mut out = output::Output::new(std::io::stdout().lock());
    let reads = cli.command.takes_no_replay();
    let ends_with_reader = cli.command.ends_with_its_reader();
    let contents = match wants_document {
        _ if cli.command.prints_bytes() => Contents::Bytes,
        true => Contents::Document,
        false => Contents::Text,
    };
    let mut until_closed = terminal::UntilClosed::new(&mut out);
    let done = match ends_with_reader {
        true => run(cli.command, &mut Harmless::new(&mut *until_closed.inner(), contents)),
        false => run(cli.command, &mut Harmless::new(&mut until_closed, contents)),
    };
    // That nobody reads it, or that its disk is full, changes nothing about what was found.
    let unwritten = until_closed.flush().and_then(|()| until_closed.inner().whole());
    let done = match (done, unwritten) {
        (Ok(CommandEnd::Good), Err(error)) => Err(error.into()),
        (Ok(found), Err(error)) => {
            terminal::error(&error.into());
            Ok(found)
        }
        (done, _) => done,
    };
    // Whatever has happened: see there.
    let closed = volume::open::close_all();
    volume::open::end_if_signalled();
    let done = match (done, closed) {
        (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(error)) => {
            terminal::error(&first);
            Err(error)
        }
        (done, Ok(())) => done,
    };
    match done {
        Ok(CommandEnd::Good) => ExitCode::SUCCESS,
        Ok(CommandEnd::Problem) => ExitCode::from(1),
        Ok(CommandEnd::Status(status)) => ExitCode::from(status),
        Ok(CommandEnd::Stopped) => ExitCode::from(CommandEnd::STOPPED),
        // Whoever reads our output has had enough (`| head`): nothing is wrong.
        Err(e) if ends_with_reader && is_closed_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            terminal::error(&e);
            let (hint, status) = (way_out::of(&e, reads), status_of(&e));
            hint.iter().for_each(|hint| terminal::note(hint));
            if wants_document && !out.any {
                // OK to ignore: the standard error has it, too.
                let _ = document::error(
                    &mut out,
                    &terminal::with_causes(&e),
                    hint.as_deref().map(|hint| hint.strip_prefix("hint: ").unwrap_or(hint)),
                    status,
                );
            }
            ExitCode::from(status)
        }
    }
}

/// A file that becomes larger than this process may write (setrlimit(2), RLIMIT_FSIZE) is an error
/// of the write, EFBIG, and not the end of a mount with all that it has not written yet.
fn take_file_size_limit_as_error() {
    // A signal with a handler kills nobody; programs that we start have none. OK to ignore: without
    // it nothing is worse than it is by default.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Default::default());
}

/// A command line that was not understood, or that asks for help: as clap has it, and a document
/// where one was asked for.
fn misread(e: &clap::Error, words: &[OsString]) -> ExitCode {
    if words.get(1).is_some_and(|word| word == "dd")
        && let Some(CommandEnd::Status(status)) = dd::misread(e, words)
    {
        return ExitCode::from(status);
    }
    let status = u8::try_from(e.exit_code()).unwrap_or(2);
    let text = e.render().to_string();
    // In colours, unless a word is quoted that a terminal would obey.
    let printed = match e.use_stderr() && terminal::harmless(&text) != text {
        true => {
            terminal::note(text.trim_end());
            Ok(())
        }
        false => e.print().map_err(output::named),
    };
    // OK to ignore what the standard error does not take: there is nobody else to report it to.
    if let (false, Err(e)) = (e.use_stderr(), printed)
        && output::is_unwritten(&e)
    {
        terminal::error(&e.into());
        return ExitCode::from(2);
    }
    if e.use_stderr() && document::seems_wanted(words) {
        let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
        let _ = document::error(&mut std::io::stdout().lock(), text, None, status);
    }
    ExitCode::from(status)
}

fn is_closed_pipe(e: &anyhow::Error) -> bool {
    e.chain()
        .filter_map(|c| c.downcast_ref::<std::io::Error>())
        .any(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run(command: Command, out: &mut dyn Write) -> Result<CommandEnd> {
    match reproducible::seed(&command)? {
        Some(seed) => reproducible::run(seed, move |out| done(command, out), out),
        None => done(command, out),
    }
}

fn done(command: Command, out: &mut dyn Write) -> Result<CommandEnd> {
    match command {
        Command::Lab(Lab::List { json }) => lab::list(json, out)?,
        Command::Lab(Lab::Devices { kind, format, json }) => {
            let format = if json { Some(cli::ListFormat::Json) } else { format };
            lab::devices(kind.as_deref(), format, out)?;
        }
        Command::Lab(Lab::Scenario { scenario, .. }) => lab::scenario(scenario.as_deref(), out)?,
        Command::Lab(Lab::Keys { markdown, json }) => lab::keys(markdown, json, out)?,
        Command::Lab(Lab::Check { scenario, json }) => lab::check(&scenario, json, out)?,
        Command::Lab(Lab::Run(args)) => return lab::run(&args, out),
        Command::Lab(Lab::Show(args)) => lab::show_saved(&args, out)?,
        Command::Lab(Lab::Sensitivity(args)) => return sensitivity::run(&args, out),
        Command::Lab(Lab::Validate(args)) => return validate::run(&args, out),
        Command::Lab(Lab::Calibrate(args)) => return calibrate::run(&args, out),
        Command::Lab(Lab::Compare(args)) => return compare::run(&args, out),
        Command::Lab(Lab::Drives { json }) => sensitivity::drives(json, out)?,
        Command::Sweep(command) => return sweep::run(&command, out),
        Command::Iozone { options } => return iozone::run(&options, out),
        Command::Fio(args) => return fio::run(*args, out),
        Command::Dd(args) => return dd::run(&args),
        Command::Hdparm(args) => return hdparm::run(args, out),
        Command::Mkfs(args) => mkfs::run(&args, out)?,
        Command::Ls { recursive, image, path } => {
            return image::reading(&image, |fs| tree::ls(fs, &path, recursive, out));
        }
        Command::Cat { image, path } => {
            image::reading(&image, |fs| tree::cat(fs, &path, out))?;
        }
        Command::Get(args) => {
            let target = args.target()?;
            return image::reading(&args.image, |fs| tree::get(fs, &target, &args, out));
        }
        Command::Put(args) => {
            let source = args.source()?;
            tree::check_source(&source)?;
            return image::changing(&args.image, |fs| tree::put(fs, &source, &args));
        }
        Command::Rm { recursive, image, path } => {
            return image::changing(&image, |fs| tree::rm(fs, &path, recursive));
        }
        Command::Mkdir { image, path } => {
            image::changing(&image, |fs| fs.create_dir(&path).map_err(image::to_anyhow))?;
        }
        Command::Replay { image } => image::replay(&image, out)?,
        Command::Journal(command) => return journal::run(&command, out),
        Command::Check { image, json } => return image::check(&image, json, out),
        Command::Info { image, json } => image::info(&image, json, out)?,
        Command::Extents { image, path, json } => {
            let list = |fs: &FileSystem| extents::extents(&**fs.vfs(), path.as_bytes(), json, out);
            image::reading(&image, list)?;
        }
        Command::Volume(command) => return volume::run(&command, out),
        Command::Pmem(command) => return pmem::run(&command, out),
        Command::Svm(svm) => return svm::run(&svm, out),
        Command::Iostat(iostat) => iostat::run(&iostat, out)?,
        Command::Top(args) => return top::run(&args, out),
        Command::Serve(args) => return serve::serve(&args, out),
        Command::Host(command) => return serve::host(&command, out),
        Command::Trace(command) => return trace::run(&command, out),
        Command::Crash(command) => return crash::command(&command, out),
        Command::Mount(args) => return mount::mount(&args, out),
        Command::Umount { mountpoint, timeout } => {
            return mount::umount(&mountpoint, timeout.map(std::time::Duration::from_secs));
        }
        Command::Status { mountpoint, json } => {
            return mount::status(mountpoint.as_deref(), json, out);
        }
        Command::Transact { mountpoint, mask } => {
            return mount::transact(&mountpoint, mask.as_deref(), out);
        }
        Command::Rollback { mountpoint } => return mount::rollback(&mountpoint, out),
        Command::MountOptions => write!(out, "{}", mount::options::markdown())?,
        Command::Man { folder } => pages::man(&folder)?,
        Command::Completions { shell } => pages::completions(shell, out)?,
    }
    Ok(CommandEnd::Good)
}
