//! An unbounded many-to-one queue of messages between tasks.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Condvar, Mutex};

struct ChannelCore<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    messages: VecDeque<T>,
    senders: usize,
}

/// The sending end; clone it for each sender.
pub struct Sender<T>(Arc<ChannelCore<T>>);

/// The receiving end.
pub struct Receiver<T>(Arc<ChannelCore<T>>);

/// Makes a channel.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { messages: VecDeque::new(), senders: 1 };
    let shared = Arc::new(ChannelCore { state: Mutex::new(state), changed: Condvar::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    /// Queues a message; never waits.
    pub fn send(&self, message: T) {
        self.0.state.lock().messages.push_back(message);
        self.0.changed.notify_one();
    }
}

impl<T> Receiver<T> {
    /// Waits for the next message; `None` when all senders are gone and the queue is empty.
    pub fn recv(&self) -> Option<T> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(m) = state.messages.pop_front() {
                return Some(m);
            }
            if state.senders == 0 {
                return None;
            }
            state = self.0.changed.wait(state);
        }
    }

    /// The next message if one is there.
    pub fn try_recv(&self) -> Option<T> {
        self.0.state.lock().messages.pop_front()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().senders -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivers_in_order_and_ends_with_the_senders() {
        fn body() -> Vec<u32> {
            let (tx, rx) = channel();
            let t = crate::spawn("sender", move || (0..5).for_each(|i| tx.send(i)));
            let got = std::iter::from_fn(|| rx.recv()).collect();
            t.join().unwrap();
            got
        }
        assert_eq!(body(), [0, 1, 2, 3, 4]);
        assert_eq!(crate::Sim::new(0).run(body), Ok(vec![0, 1, 2, 3, 4]));
    }
}
