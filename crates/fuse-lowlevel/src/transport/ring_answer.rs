//! Answers to requests that have come in entries of a ring: at once, or later from other threads.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::ring_memory::EntryMemory;
use crate::protocol::{Arguments, InHeader};
use crate::reply::{Answer, Fill, LateAnswer};
use crate::session::{Dispatcher, Handler};

/// Room for the answer to a write, whose data is in the payload meanwhile.
pub(super) const SHORT: usize = 64;

/// What became of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestEnd {
    Sent { error: i32, len: usize },
    Later,
}

/// Has a request answered; what became of it.
pub(super) fn answered<H: Handler>(
    to: &Dispatcher<'_, H>,
    asked: &InHeader,
    arguments: Arguments<'_>,
    mut answer: RingAnswer<'_>,
) -> Option<RequestEnd> {
    to.dispatch(asked, arguments, &mut answer);
    answer.outcome
}

/// Where an answer is put.
pub(super) enum AnswerRoom<'a> {
    /// The payload has the request's data.
    Short(&'a mut [u8; SHORT]),
    /// The payload; who answers later takes it along.
    Payload(&'a mut Option<EntryMemory>),
}

pub(super) struct RingAnswer<'a> {
    late: &'a Arc<LateAnswers>,
    index: usize,
    room: AnswerRoom<'a>,
    has_spare: bool,
    outcome: Option<RequestEnd>,
}

impl<'a> RingAnswer<'a> {
    pub(super) fn new(
        (late, has_spare): (&'a Arc<LateAnswers>, bool),
        index: usize,
        room: AnswerRoom<'a>,
    ) -> RingAnswer<'a> {
        RingAnswer { late, index, room, has_spare, outcome: None }
    }
}

/// Puts an answer's parts one behind the other; the error number and the length to be sent.
fn put(error: i32, parts: &[&[u8]], room: &mut [u8]) -> (i32, usize) {
    let mut len = 0;
    for part in parts {
        let Some(place) = room.get_mut(len..len + part.len()) else {
            tracing::error!("an answer is longer than its memory");
            return (-Errno::IO.raw_os_error(), 0);
        };
        place.copy_from_slice(part);
        len += part.len();
    }
    (error, len)
}

/// The same with what is put there by somebody else.
fn fill(len: usize, with: Fill<'_>, room: &mut [u8]) -> (i32, usize) {
    let Some(out) = room.get_mut(..len) else {
        tracing::error!("an answer is longer than its memory");
        return (-Errno::IO.raw_os_error(), 0);
    };
    match with(out) {
        Ok(filled) => (0, filled.min(len)),
        Err(e) => (-e.raw_os_error(), 0),
    }
}

impl Answer for RingAnswer<'_> {
    fn send(&mut self, error: i32, parts: &[&[u8]]) {
        let (error, len) = match &mut self.room {
            AnswerRoom::Short(short) => put(error, parts, &mut short[..]),
            AnswerRoom::Payload(Some(memory)) => put(error, parts, memory.parts().1),
            AnswerRoom::Payload(None) => (-Errno::IO.raw_os_error(), 0),
        };
        self.outcome = Some(RequestEnd::Sent { error, len });
    }

    fn has_memory(&self) -> bool {
        matches!(self.room, AnswerRoom::Payload(Some(_)))
    }

    fn fill(&mut self, len: usize, with: Fill<'_>) {
        let (error, len) = match &mut self.room {
            AnswerRoom::Payload(Some(memory)) => fill(len, with, memory.parts().1),
            _ => (-Errno::IO.raw_os_error(), 0),
        };
        self.outcome = Some(RequestEnd::Sent { error, len });
    }

    fn has_room_for_later(&self) -> bool {
        self.has_spare
    }

    fn later(&mut self) -> Box<dyn LateAnswer> {
        self.outcome = Some(RequestEnd::Later);
        let memory = match &mut self.room {
            AnswerRoom::Short(_) => None,
            AnswerRoom::Payload(memory) => memory.take(),
        };
        Box::new(RingLateAnswer { late: Arc::clone(self.late), index: self.index, memory })
    }
}

/// Answers that have come from other threads.
pub(super) struct LateAnswers {
    answers: Mutex<Vec<LateMessage>>,
    wake: OwnedFd,
}

pub(super) struct LateMessage {
    pub index: usize,
    pub error: i32,
    pub len: usize,
    /// With the answer in it.
    pub memory: Option<EntryMemory>,
    /// The answer, if its thread has kept the memory.
    pub short: Vec<u8>,
}

impl LateAnswers {
    pub fn new() -> io::Result<Arc<LateAnswers>> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(LateAnswers { answers: Mutex::default(), wake }))
    }

    /// Becomes readable when one has come.
    pub fn wake(&self) -> &OwnedFd {
        &self.wake
    }

    /// Those that have come since the last time.
    pub fn take(&self) -> Vec<LateMessage> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LateMessage>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct RingLateAnswer {
    late: Arc<LateAnswers>,
    index: usize,
    memory: Option<EntryMemory>,
}

impl RingLateAnswer {
    fn answer(self, (error, len): (i32, usize), short: Vec<u8>) {
        let RingLateAnswer { late, index, memory } = self;
        late.lock().push(LateMessage { index, error, len, memory, short });
        // OK to ignore: it is full only if nobody has looked for very long, and somebody will.
        let _ = rustix::io::write(&late.wake, &1u64.to_ne_bytes());
    }
}

impl LateAnswer for RingLateAnswer {
    fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    fn fill(mut self: Box<Self>, len: usize, with: Fill<'_>) {
        let end = match &mut self.memory {
            Some(memory) => fill(len, with, memory.parts().1),
            None => (-Errno::IO.raw_os_error(), 0),
        };
        self.answer(end, Vec::new());
    }

    fn send(mut self: Box<Self>, error: i32, parts: &[&[u8]]) {
        let mut short = Vec::new();
        let end = match &mut self.memory {
            Some(memory) => put(error, parts, memory.parts().1),
            None => {
                short.resize(SHORT, 0);
                let (error, len) = put(error, parts, &mut short);
                short.truncate(len);
                (error, len)
            }
        };
        self.answer(end, short);
    }
}
