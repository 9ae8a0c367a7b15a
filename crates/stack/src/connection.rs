//! Connections of control sockets. The other side may be anybody, or be stopped: each wait has an
//! end, if the caller names one.

use std::io::Result;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::protocol::LINE_MAX;

/// The next try where too many wait to be accepted.
const CROWDED: Duration = Duration::from_millis(10);

/// Connects to a socket until then: a connect(2) that blocks has no end if the other side accepts
/// nobody.
///
/// # Errors
/// As the system says; `AGAIN` where nobody was accepted.
pub fn connect(socket: &Path, until: Instant) -> rustix::io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&connection, &address) {
            Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(CROWDED),
            Err(Errno::INTR) => {}
            done => break done?,
        }
    }
    rustix::io::ioctl_fionbio(&connection, false)?;
    Ok(UnixStream::from(connection))
}

/// The process at the other side of a connection, as it was when it connected or began to listen.
pub struct Peer {
    /// Its number here; none where it is not seen from this process's namespace of processes (one
    /// outside of a container, asked from inside; unix(7), `SO_PEERCRED`: the kernel says 0).
    pub process: Option<u32>,
    /// Its effective user.
    pub user: u32,
}

/// Who is at the other side.
///
/// # Errors
/// As the system says.
pub fn peer(connection: &impl AsFd) -> rustix::io::Result<Peer> {
    // Not rustix's: a process number is never 0 to it.
    let said =
        getsockopt(connection, PeerCredentials).map_err(|e| Errno::from_raw_os_error(e as i32))?;
    let process = u32::try_from(said.pid()).ok().filter(|&number| number != 0);
    Ok(Peer { process, user: said.uid() })
}

/// Sends a request, a line.
///
/// # Errors
/// As the system says; it took too long.
pub fn send(connection: &UnixStream, line: &str, until: Option<Instant>) -> Result<()> {
    Ok(send_all(connection, format!("{line}\n").as_bytes(), until)?)
}

/// The line of an answer, or its beginning where the other side has ended; it must be there in
/// time. `None` waits for as long as it takes.
///
/// # Errors
/// As the system says; it took too long.
pub fn receive(connection: &UnixStream, until: Option<Instant>) -> Result<Vec<u8>> {
    Ok(receive_whole(connection, until, LINE_MAX, |line| line.last() == Some(&b'\n'))?)
}

/// Whether an answer begins, or the other side ends, within this time.
///
/// # Errors
/// As the system says.
pub(crate) fn begins_within(connection: &UnixStream, time: Duration) -> Result<bool> {
    set_socket_timeout(connection, Timeout::Recv, Some(time))?;
    match rustix::net::recv(connection, &mut [0; 1], RecvFlags::PEEK) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Sends all of it; who takes it byte after byte gets no more time.
pub(crate) fn send_all(
    connection: impl AsFd,
    mut bytes: &[u8],
    until: Option<Instant>,
) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        set_socket_timeout(&connection, Timeout::Send, left(until)?)?;
        match rustix::net::send(&connection, bytes, SendFlags::NOSIGNAL) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Receives until it is whole or so long, or the other side has ended.
pub(crate) fn receive_whole(
    connection: impl AsFd,
    until: Option<Instant>,
    most: u64,
    is_whole: fn(&[u8]) -> bool,
) -> rustix::io::Result<Vec<u8>> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    while !is_whole(&bytes) && (bytes.len() as u64) < most {
        // Anew for each piece: who sends byte after byte gets no more time for it.
        set_socket_timeout(&connection, Timeout::Recv, left(until)?)?;
        match rustix::net::recv(&connection, &mut piece, RecvFlags::empty()) {
            Ok((0, _)) => break,
            Ok((n, _)) => bytes.extend_from_slice(&piece[..n]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(bytes)
}

/// The time left; an error when there is none.
fn left(until: Option<Instant>) -> rustix::io::Result<Option<Duration>> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    if left == Some(Duration::ZERO) { Err(Errno::TIMEDOUT) } else { Ok(left) }
}
