//! The process: opens everything, serves tree and socket, and closes all at the end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sd_notify::NotifyState;
use steadfast_block::BlockDevice;
use steadfast_block::signatures;
use steadfast_fuse::{FuseMount, Options as FuseOptions, is_dead, unmount_lazily};
use steadfast_host::mounts::{self, Mount};
use steadfast_stack::listener::check_path;
use steadfast_stack::metrics::Metrics;
use steadfast_stack::{Host, HostConfig, Options, Server, Tree, detach_dead};
use steadfast_vfs::bounded;

use super::cli::Serve;
use super::mounts::Ext4Mounts;
use super::said;
use crate::mount::log::{self, LogFile};
use crate::mount::serve::not_mounted;
use crate::mount::{background, place};
use crate::stop_signals::Stops;
use crate::{CommandEnd, Usage, terminal};

/// How long the end is held up by those who asked for it and wait for the answer.
const ANSWERS: Duration = Duration::from_secs(5);
/// How long open files are waited for when a signal ends the process.
const GRACE: Duration = Duration::from_secs(2);

/// Starts a host, in the background unless asked otherwise.
pub fn serve(args: &Serve, out: &mut dyn Write) -> Result<CommandEnd> {
    let (path, config) = configuration(args.config.as_deref())?;
    if !args.foreground && !args.serves_in_background {
        return background::start();
    }
    let (folder, log) =
        LogFile::of_process(args.log.as_deref(), args.serves_in_background, "host.log")?;
    log::start(log.as_ref(), args.debug)?;
    let given = |by_hand: &Option<PathBuf>, by_file: &Option<PathBuf>, default: PathBuf| {
        let base = path.parent().unwrap_or(Path::new("/"));
        let by_file = by_file.as_ref().map(|p| base.join(p));
        let chosen = by_hand.clone().or(by_file).unwrap_or(default);
        std::path::absolute(&chosen).with_context(|| chosen.display().to_string())
    };
    let socket = given(&args.socket, &config.socket, place::host_socket())?;
    check_path(&socket).map_err(|e| Usage(format!("{}: {e}", socket.display())))?;
    let own_tree = folder.join("stack");
    let tree = given(&args.tree, &config.tree, own_tree.clone())?;
    let is_own = tree == own_tree;
    let mounter = Ext4Mounts { folder, log: log.as_ref().map(|log| log.path.clone()) };
    let forget =
        |device: &Arc<dyn BlockDevice>| signatures::wipe(device).map_err(|e| e.to_string());
    let occupant = steadfast::occupant;
    let stops = Stops::listen()?;
    let held = stops.hold();
    check_tree(&tree, is_own, &path)?;
    drop(held);
    let options = Options { config: path, occupant, forget, mounter: Box::new(mounter) };
    let host = Host::start(options, &config).map_err(said)?;
    let ready = |()| match (args.serves_in_background, &log) {
        (true, Some(log)) => background::detach(log, out),
        _ => Ok(()),
    };
    let places = (socket.as_path(), tree.as_path(), is_own);
    let served = serve_host(args, &config, &host, places, log.is_some(), &stops, ready);
    // Also after an error: what was opened is closed.
    let closed = host.close().map_err(said);
    served?;
    closed?;
    tracing::info!("the host has ended");
    Ok(CommandEnd::Good)
}

fn serve_host(
    args: &Serve,
    config: &HostConfig,
    host: &Arc<Host>,
    (socket, tree, is_own): (&Path, &Path, bool),
    log_is_file: bool,
    stops: &Stops,
    ready: impl FnOnce(()) -> Result<()>,
) -> Result<()> {
    let held = stops.hold();
    let mounted = mount_tree(host, tree, is_own)?;
    let unmounter = mounted.unmounter();
    host.tree_is_at(mounted.mountpoint());
    let at = mounted.mountpoint().to_path_buf();
    let serving = std::thread::Builder::new().name("tree".into());
    let serving = serving.spawn(move || mounted.serve())?;
    let ending = Arc::downgrade(host);
    held.then(move |signal| {
        tracing::info!("signal {signal}: closing everything");
        if let Some(host) = ending.upgrade() {
            host.end();
        }
    });
    let served = (|| {
        // Whoever gets an answer finds mounted what is to be.
        host.mount_configured(config);
        let server = Server::open(socket, host).map_err(said)?;
        let metrics = args.metrics.as_ref().or(config.metrics.as_ref());
        let metrics = metrics.map(|place| Metrics::open(place, host).map_err(said)).transpose()?;
        let shown = (at.display(), socket.display());
        tracing::info!("files at {}, socket {}", shown.0, shown.1);
        if let Some(metrics) = &metrics {
            tracing::info!("metrics at {}", metrics.address());
        }
        if log_is_file {
            // It is in the log already.
            for problem in host.status().problems() {
                terminal::note(&format!("warning: {problem}"));
            }
        }
        ready(())?;
        // Who is started after the host finds its volumes. Without systemd nobody listens.
        if let Err(e) = sd_notify::notify(&[NotifyState::Ready]) {
            tracing::warn!("systemd cannot be notified that the host is ready: {e}");
        }
        host.wait();
        // OK to ignore: it is notified so that the log of systemd says what takes its time.
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        server.close(ANSWERS);
        Ok(())
    })();
    host.let_kernel_go();
    if unmounter.unmount().is_err() {
        tracing::warn!("files of {} are open; they are cut off", at.display());
        // OK to ignore: nothing more can be done.
        let _ = unmounter.unmount_lazily();
    }
    let until = Instant::now() + GRACE;
    while !serving.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    served
}

/// Mounts the tree; what a host left behind that was killed is taken away first. `is_own`: it is in
/// the folder for sockets and logs, where others may have put a link.
fn mount_tree(host: &Arc<Host>, at: &Path, is_own: bool) -> Result<FuseMount> {
    if is_dead(at) {
        for device in detach_dead(at) {
            let shown = device.display();
            tracing::warn!("{shown}: was a volume of a host that was killed, and is detached");
        }
        unmount_lazily(at)?;
    }
    make_tree_folder(at, is_own)?;
    let tree = Arc::new(Tree::new(Arc::clone(host)));
    FuseMount::new(tree, at, &tree_options(host.config())).map_err(not_mounted)
}

fn make_tree_folder(at: &Path, is_own: bool) -> Result<()> {
    match is_own {
        true => Ok(place::make_own(at)?),
        false => std::fs::create_dir_all(at).with_context(|| at.display().to_string()),
    }
}

/// Refuses a place where no tree can be mounted, before a volume is assembled and its labels are
/// written. What a host has left there, or has there now, is for later to say.
fn check_tree(at: &Path, is_own: bool, config: &Path) -> Result<()> {
    if mounts::at(at).is_ok_and(|place| place.mounted().is_some_and(Mount::is_ours)) {
        return Ok(());
    }
    make_tree_folder(at, is_own)?;
    FuseMount::check(at, &tree_options(config)).map_err(not_mounted)
}

fn tree_options(config: &Path) -> FuseOptions {
    let zero = Duration::ZERO;
    FuseOptions {
        source: format!("stack {}", config.display()),
        uncached: true,
        entry_timeout: zero,
        attr_timeout: zero,
        negative_timeout: zero,
        ..FuseOptions::default()
    }
}

/// The configuration file and what is in it. One that nobody named need not be there.
fn configuration(given: Option<&Path>) -> Result<(PathBuf, HostConfig)> {
    let path = match given {
        Some(path) => path.to_path_buf(),
        None => default_config(),
    };
    let path = std::path::absolute(&path).with_context(|| path.display().to_string())?;
    let shown = path.display().to_string();
    let text = match bounded::text(&path, bounded::SETTINGS_MAX) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && given.is_none() => String::new(),
        Err(e) => usage!("{shown}: {e}; a file with nothing in it will do"),
    };
    let config = HostConfig::parse(&text, &shown).map_err(|e| Usage(e.to_string()))?;
    Ok((path, config))
}

fn default_config() -> PathBuf {
    let file = "steadfast/stack.toml";
    if rustix::process::geteuid().is_root() {
        return Path::new("/etc").join(file);
    }
    let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
    folder.unwrap_or_default().join(file)
}
