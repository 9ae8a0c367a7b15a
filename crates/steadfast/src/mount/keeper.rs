//! What one of our processes has a device for: the hint beside "is in use".

use std::path::Path;
use steadfast_vfs::path::shown;

use steadfast_stack::protocol::Request;

use super::{control, place};
use crate::commands::serve;

/// Where a process of ours has mounted what it keeps, or at which socket it answers; `None` if it
/// is not ours, or not to be seen by this user.
pub fn of(process: u32) -> Option<String> {
    if let Some(running) = control::of_process(process) {
        let at = running.status["mountpoint"].as_str().unwrap_or_default();
        let at = shown(at.as_bytes());
        return Some(format!("process {process} has it mounted at {at} (steadfast umount {at})"));
    }
    let socket = place::host_socket();
    let is_host = asked(&socket) == Some(process);
    is_host.then(|| {
        let socket = shown(socket.as_os_str().as_encoded_bytes());
        format!("process {process} is the stack host at {socket} (steadfast host status)")
    })
}

/// The process of the host that answers at a socket.
fn asked(socket: &Path) -> Option<u32> {
    let answer = serve::client(Some(socket)).ok()?.call(&Request::Status).ok()?;
    answer.stack.map(|stack| stack.pid)
}
