//! The asking half of a control socket. Whoever listens may be anybody, or be stopped: no wait is
//! for ever.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};

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

/// Sends a request, a line.
///
/// # Errors
/// As the system says.
pub fn send(mut connection: &UnixStream, line: &str, until: Option<Instant>) -> Result<()> {
    connection.set_write_timeout(left(until)?)?;
    writeln!(connection, "{line}")
}

/// The line of an answer, or its beginning where the other side has ended; it must be there in
/// time. `None` waits for as long as it takes.
///
/// # Errors
/// As the system says; it took too long.
pub fn receive(mut connection: &UnixStream, until: Option<Instant>) -> Result<Vec<u8>> {
    let (mut line, mut piece) = (Vec::new(), [0; 4096]);
    while line.last() != Some(&b'\n') && (line.len() as u64) < LINE_MAX {
        // Anew for each piece: who sends byte after byte gets no more time for it.
        connection.set_read_timeout(left(until)?)?;
        match connection.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => line.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Ok(line)
}

/// Whether an answer begins, or the other side ends, within this time.
///
/// # Errors
/// As the system says.
pub fn begins_within(connection: &UnixStream, time: Duration) -> Result<bool> {
    connection.set_read_timeout(Some(time))?;
    match rustix::net::recv(connection, &mut [0; 1], RecvFlags::PEEK) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// The time left; an error when there is none.
fn left(until: Option<Instant>) -> Result<Option<Duration>> {
    let Some(until) = until else { return Ok(None) };
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(Error::new(ErrorKind::TimedOut, "no answer in time")),
        left => Ok(Some(left)),
    }
}
