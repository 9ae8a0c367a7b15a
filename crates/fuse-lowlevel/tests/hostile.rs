//! A kernel's side that sends what no kernel sends: operations that do not exist, lengths that
//! disagree, arguments of arbitrary bytes, FORGET and INTERRUPT without end. Each request is
//! answered once, with an answer that is as long as it says; nothing panics and nothing hangs.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use steadfast_fuse_lowlevel::{
    Access, Capabilities, Config, EntryOut, FileAttr, ForgetCount, Handler, InHeader, Operation,
    Reply, Session, TransportChoice, Wishes, opcode,
};

/// Answers everything with something; every third request later, from another thread.
#[derive(Default)]
struct AnyHandler {
    asked: AtomicU64,
    forgotten: AtomicU64,
}

impl Handler for AnyHandler {
    fn handle(&self, asked: &InHeader, operation: Operation<'_>, reply: Reply<'_>) {
        let count = self.asked.fetch_add(1, Ordering::Relaxed);
        match operation {
            Operation::Lookup { .. } => {
                let attr = FileAttr { ino: asked.nodeid, ..FileAttr::default() };
                reply.entry(&EntryOut::new((7, 0), attr, Duration::ZERO, Duration::ZERO));
            }
            Operation::Read { size, .. } => reply.data(&vec![0; (size as usize).min(4096)]),
            Operation::Write { data, .. } => reply.written(data.len() as u32),
            Operation::Ioctl { .. } if count.is_multiple_of(3) => {
                let reply = reply.later();
                std::thread::spawn(move || reply.ioctl(&[1, 2, 3]));
            }
            // An answer that nobody gives.
            Operation::Fsync { .. } => drop(reply),
            _ => reply.done(),
        }
    }

    fn forget(&self, _: ForgetCount) {
        self.forgotten.fetch_add(1, Ordering::Relaxed);
    }
}

fn message(opcode: u32, unique: u64, len: Option<u32>, body: &[u8]) -> Vec<u8> {
    let whole = 40 + body.len() as u32;
    let mut bytes = Vec::new();
    bytes.extend(len.unwrap_or(whole).to_ne_bytes());
    bytes.extend(opcode.to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes.extend(1u64.to_ne_bytes());
    bytes.extend([0; 16]);
    bytes.extend(body);
    bytes
}

/// The kernel's end of a connection that is served.
struct Kernel {
    socket: OwnedFd,
    /// Answers to each request.
    answers: HashMap<u64, u32>,
}

impl Kernel {
    /// Sends a message.
    fn send(&self, message: &[u8]) {
        assert_eq!(write(&self.socket, message).unwrap(), message.len());
    }

    /// Takes answers until nothing comes for so long.
    fn take(&mut self, wait: Duration) -> bool {
        let time = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: 0 };
        if poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&time)).unwrap() == 0 {
            return false;
        }
        let mut answer = vec![0; 64 << 10];
        let len = read(&self.socket, &mut answer[..]).unwrap();
        assert!(len >= 16 && u32::from_ne_bytes(answer[..4].try_into().unwrap()) as usize == len);
        let unique = u64::from_ne_bytes(answer[8..16].try_into().unwrap());
        *self.answers.entry(unique).or_insert(0) += 1;
        true
    }
}

/// Sends requests: each has its answer, and those to FORGET have none. What the handler has seen.
fn ask(requests: &[(u32, Vec<u8>)]) -> AnyHandler {
    let (socket, ours) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let server = std::thread::spawn(move || serve(ours));
    let mut kernel = Kernel { socket, answers: HashMap::new() };
    let init: Vec<u8> = [7u32, 45, 0, u32::MAX].iter().flat_map(|n| n.to_ne_bytes()).collect();
    kernel.send(&message(opcode::INIT, 1, None, &init));
    assert!(kernel.take(LONG));
    let numbered = (1..).map(|n| n * 2).zip(requests);
    for (unique, (opcode, body)) in numbered.clone() {
        kernel.send(&message(*opcode, unique, None, body));
        while kernel.take(Duration::ZERO) {}
    }
    let expected: HashMap<u64, u32> = std::iter::once(1)
        .chain(numbered.filter(|(_, (opcode, _))| !is_forget(*opcode)).map(|(unique, _)| unique))
        .map(|unique| (unique, 1))
        .collect();
    while kernel.answers.len() < expected.len() && kernel.take(LONG) {}
    assert_eq!(kernel.answers, expected);
    kernel.send(&message(opcode::DESTROY, u64::MAX - 1, None, &[]));
    assert!(kernel.take(LONG), "the last answer");
    server.join().expect("a panic while serving").unwrap()
}

const LONG: Duration = Duration::from_secs(60);

fn serve(connection: OwnedFd) -> std::io::Result<AnyHandler> {
    let config = Config {
        access: Access::All,
        threads: 1,
        clone_device: false,
        transport: TransportChoice::Best,
        buffers: 64 << 20,
    };
    let session = Session::connect(connection, config, |_| {
        let wishes = Wishes {
            capabilities: Capabilities::all(),
            max_write: 64 << 10,
            max_background: 64,
            max_readahead: 0,
        };
        (wishes, AnyHandler::default())
    })?;
    session.serve()
}

fn is_forget(opcode: u32) -> bool {
    matches!(opcode, opcode::FORGET | opcode::BATCH_FORGET)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_requests_are_answered_once(
        requests in prop::collection::vec(
            // Not DESTROY, which ends it.
            (0u32..60, prop::collection::vec(any::<u8>(), 0..300)).prop_filter(
                "DESTROY", |(opcode, _)| *opcode != opcode::DESTROY,
            ),
            0..60,
        ),
    ) {
        ask(&requests);
    }

    #[test]
    fn arbitrary_messages_end_serving_or_are_answered(
        opcode in any::<u32>(),
        len in any::<u32>(),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (socket, ours) = socketpair(
            AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None,
        ).unwrap();
        let server = std::thread::spawn(move || serve(ours));
        let kernel = Kernel { socket, answers: HashMap::new() };
        kernel.send(&message(opcode, 2, Some(len), &body));
        // Whoever does not begin with the handshake is refused.
        prop_assert!(server.join().expect("a panic while serving").is_err());
    }
}

#[test]
fn storms_of_forget_and_interrupt_are_taken() {
    let mut requests = Vec::new();
    let batch: Vec<u8> =
        [100u64].into_iter().chain((0..200).map(|n| n + 1)).flat_map(u64::to_ne_bytes).collect();
    for n in 0..2000u64 {
        requests.push((opcode::FORGET, 1u64.to_ne_bytes().to_vec()));
        requests.push((opcode::BATCH_FORGET, batch.clone()));
        // Of a request that is answered, that was never there, of itself.
        requests.push((opcode::INTERRUPT, n.to_ne_bytes().to_vec()));
        // Cut off: nothing is forgotten, or as much as is there.
        requests.push((opcode::FORGET, vec![0; 3]));
        requests.push((opcode::BATCH_FORGET, batch[..40].to_vec()));
    }
    let seen = ask(&requests);
    assert_eq!(seen.asked.into_inner(), 0);
    assert_eq!(seen.forgotten.into_inner(), 2000 * (1 + 100 + 2));
}
