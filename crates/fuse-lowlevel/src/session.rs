//! A connection to the kernel, from the handshake to its end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::notifier::Notifier;
use crate::protocol::{
    Arguments, Capabilities, ForgetCount, InHeader, InitIn, InitOut, OUT_HEADER, Offer, Operation,
    OutHeader, VERSION, Wishes, opcode,
};
use crate::reply::{Answer, Reply};
use crate::transport::{
    Device, Rings, Transport, TransportChoice, receive, serve_device, serve_rings,
};

/// What answers requests.
pub trait Handler: Sync {
    /// Answers a request.
    fn handle(&self, asked: &InHeader, operation: Operation<'_>, reply: Reply<'_>);

    /// The kernel forgets entries that it was given. There is no answer.
    fn forget(&self, forgotten: ForgetCount);
}

/// Whose requests are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Those of this user; of others only what is about files that are open.
    Owner(u32),
    /// Everybody's.
    All,
}

/// How a connection is served.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Whose requests.
    pub access: Access,
    /// Requests that are answered at the same time; at least 1.
    pub threads: usize,
    /// Each of these threads has a descriptor of its own. Who may not open /dev/fuse cannot.
    pub clone_device: bool,
    /// What carries the requests.
    pub transport: TransportChoice,
    /// Bytes of memory that io_uring's entries may have at most.
    pub buffers: u64,
}

/// A connection after the handshake.
pub struct Session<H> {
    device: Arc<Device>,
    handler: H,
    config: Config,
    max_write: u32,
    transport: Transport,
    rings: Option<Rings>,
}

/// Hands requests to a handler.
pub(crate) struct Dispatcher<'h, H> {
    handler: &'h H,
    access: Access,
}

impl<H: Handler> Session<H> {
    /// Waits for the kernel's INIT, and agrees with it on what `agree` makes of its offer: what is
    /// wanted, and who answers.
    ///
    /// # Errors
    /// The kernel is too old, or begins otherwise; io_uring is demanded and cannot be had.
    pub fn connect(
        connection: OwnedFd,
        config: Config,
        agree: impl FnOnce(&Offer) -> (Wishes, H),
    ) -> io::Result<Session<H>> {
        let device = Device::new(connection);
        let mut buffer = Device::buffer(0);
        loop {
            let message = device.read(&mut buffer)?;
            let (asked, arguments) = receive(message)?;
            let refuse = |errno: Errno| answer(&device, asked.unique, -errno.raw_os_error(), &[]);
            if asked.opcode != opcode::INIT {
                refuse(Errno::IO)?;
                let why = "the kernel did not begin with the handshake";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            let Some((init, more)) = of_init(arguments) else {
                refuse(Errno::INVAL)?;
                let why = "the kernel's handshake is cut off";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            };
            if init.major > VERSION.0 {
                answer(&device, asked.unique, 0, InitOut::version().as_bytes())?;
                continue;
            }
            let offer = match Offer::of(&init, more) {
                Ok(offer) => offer,
                Err(why) => {
                    refuse(Errno::PROTO)?;
                    return Err(io::Error::new(io::ErrorKind::Unsupported, why));
                }
            };
            let unique = asked.unique;
            let (mut wishes, handler) = agree(&offer);
            let rings = match Rings::wanted(&config, &offer, &wishes, &device) {
                Ok(rings) => rings,
                Err(why) => {
                    refuse(Errno::IO)?;
                    return Err(io::Error::new(io::ErrorKind::Unsupported, why));
                }
            };
            let (rings, transport) = match rings {
                Ok(rings) => {
                    wishes.capabilities |= Capabilities::OVER_IO_URING;
                    let transport = rings.transport();
                    (Some(rings), transport)
                }
                Err(why) => {
                    wishes.capabilities -= Capabilities::OVER_IO_URING;
                    (None, Transport::Device { why })
                }
            };
            answer(&device, unique, 0, InitOut::agreed(&offer, &wishes).as_bytes())?;
            let max_write = wishes.max_write;
            return Ok(Session { device, handler, config, max_write, transport, rings });
        }
    }

    /// What carries its requests.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Sends the kernel notifications.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(Arc::clone(&self.device))
    }

    /// A descriptor of the connection, which it outlives.
    ///
    /// # Errors
    /// No more file descriptors.
    pub fn connection(&self) -> io::Result<OwnedFd> {
        self.device.duplicate()
    }

    /// Answers the kernel until the mount is gone; who has answered.
    ///
    /// # Errors
    /// The connection broke.
    pub fn serve(self) -> io::Result<H> {
        let Session { device, handler, config, max_write, rings, .. } = self;
        let to = Dispatcher { handler: &handler, access: config.access };
        match rings {
            None => serve_device(&device, &to, max_write, &config)?,
            Some(rings) => {
                // What does not come over the rings: FORGET, INTERRUPT, and what comes before they
                // are ready.
                let rest = Config { threads: 1, clone_device: false, ..config };
                let serve_rest = || serve_device(&device, &to, max_write, &rest);
                serve_rings(rings, &to, serve_rest)?;
            }
        }
        Ok(handler)
    }
}

impl<H: Handler> Dispatcher<'_, H> {
    /// Has a request answered.
    pub fn dispatch(&self, asked: &InHeader, arguments: Arguments<'_>, to: &mut dyn Answer) {
        if matches!(asked.opcode, opcode::FORGET | opcode::BATCH_FORGET) {
            let forget = &mut |one| self.handler.forget(one);
            if ForgetCount::all(asked.opcode, asked.nodeid, arguments, forget).is_err() {
                tracing::debug!("the kernel has sent a FORGET that is cut off");
            }
            return;
        }
        let reply = Reply::new(to);
        match asked.opcode {
            // A second handshake.
            opcode::INIT => reply.error(Errno::IO),
            opcode::DESTROY => reply.done(),
            // The kernel asks no more: an operation that has begun is done.
            opcode::INTERRUPT => reply.error(Errno::NOSYS),
            number => match Operation::of(number, arguments) {
                Err(e) => {
                    tracing::debug!("operation {number}: {e}");
                    reply.error(Errno::INVAL);
                }
                Ok(operation) if self.is_allowed(asked, &operation) => {
                    self.handler.handle(asked, operation, reply);
                }
                Ok(_) => reply.error(Errno::ACCESS),
            },
        }
    }

    fn is_allowed(&self, asked: &InHeader, operation: &Operation<'_>) -> bool {
        match self.access {
            Access::All => true,
            Access::Owner(uid) => asked.uid == uid || operation.is_of_open_file(),
        }
    }
}

fn of_init(mut arguments: Arguments<'_>) -> Option<(InitIn, &[u8])> {
    let init = arguments.structure().ok()?;
    Some((init, arguments.rest()))
}

fn answer(device: &Device, unique: u64, error: i32, data: &[u8]) -> io::Result<()> {
    // OK to cast: the answers of the handshake are short.
    let header = OutHeader { len: (OUT_HEADER + data.len()) as u32, error, unique };
    device.write(&header, &[data])
}
