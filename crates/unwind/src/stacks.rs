//! Stacks as addresses, each kept once.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder};

use crate::NoStack;
use crate::image::{Address, Images};

/// Frames of a stack that are kept, from the inside.
const FRAMES_MAX: usize = 64;
/// Different stacks that are kept.
const STACKS_MAX: usize = 1 << 14;
/// So much of a stack is read at once; bytes.
const STACK_PIECE: usize = 4096;

/// The stacks of calls.
#[derive(Default)]
pub struct AddressStacks {
    pub images: Images,
    rules: CacheNative<MayAllocateDuringUnwind>,
    numbers: HashMap<Vec<Address>, u32>,
    /// Of each call its stack, from 1; 0: none.
    pub of_calls: Vec<u32>,
    /// Why there is none, and how often.
    pub missed: HashMap<NoStack, u64>,
}

impl AddressStacks {
    /// The stack of a thread that is stopped at this instruction.
    pub fn take(
        &mut self,
        thread: u32,
        (at, mut registers): (u64, UnwindRegsNative),
    ) -> Result<u32, NoStack> {
        let memory = File::open(format!("/proc/{thread}/mem")).map_err(|_| NoStack::Gone)?;
        let mut memory = StackMemory { memory, start: registers.sp(), piece: Vec::new() };
        self.images.look(thread);
        let mut stack = Vec::new();
        let mut next = FrameAddress::from_instruction_pointer(at);
        while stack.len() < FRAMES_MAX {
            // Of a caller the instruction that calls: it is before the one it comes back to.
            let Some(found) = self.images.find(thread, next.address_for_lookup()) else { break };
            stack.push(found);
            let Some(unwinder) = &self.images.modules[found.module as usize].unwinder else {
                break;
            };
            let in_file = match next {
                FrameAddress::InstructionPointer(_) => {
                    FrameAddress::from_instruction_pointer(found.at)
                }
                FrameAddress::ReturnAddress(_) => {
                    match FrameAddress::from_return_address(found.at + 1) {
                        Some(address) => address,
                        None => break,
                    }
                }
            };
            let mut read = |at| memory.word(at);
            let caller = unwinder.unwind_frame(in_file, &mut registers, &mut self.rules, &mut read);
            match caller.ok().flatten().and_then(FrameAddress::from_return_address) {
                Some(caller) => next = caller,
                None => break,
            }
        }
        if stack.is_empty() {
            return Err(NoStack::NoCode);
        }
        let (known, new) = (self.numbers.len(), self.numbers.len() as u32 + 1);
        match self.numbers.get(&stack) {
            Some(number) => Ok(*number),
            None if known == STACKS_MAX => Err(NoStack::TooMany),
            None => {
                self.numbers.insert(stack, new);
                Ok(new)
            }
        }
    }

    /// Notes whose stack it was.
    pub fn note(&mut self, calls: &[usize], stack: Result<u32, NoStack>) {
        match stack {
            Err(why) => *self.missed.entry(why).or_default() += calls.len() as u64,
            Ok(stack) => {
                for call in calls {
                    let len = self.of_calls.len().max(call + 1);
                    self.of_calls.resize(len, 0);
                    self.of_calls[*call] = stack;
                }
            }
        }
    }

    /// All stacks, in the order of their numbers.
    pub fn all(&self) -> Vec<&[Address]> {
        let mut all: Vec<_> = self.numbers.iter().collect();
        all.sort_unstable_by_key(|(_, number)| **number);
        all.into_iter().map(|(stack, _)| &stack[..]).collect()
    }
}

/// The memory of a thread: what is above its stack pointer is read in one piece.
struct StackMemory {
    memory: File,
    start: u64,
    piece: Vec<u8>,
}

impl StackMemory {
    fn word(&mut self, at: u64) -> Result<u64, ()> {
        if self.piece.is_empty() {
            self.piece = vec![0; STACK_PIECE];
            let read = self.memory.read_at(&mut self.piece, self.start).unwrap_or(0);
            self.piece.truncate(read);
        }
        let from = at.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let known = from.and_then(|from| self.piece.get(from..)?.first_chunk());
        match known {
            Some(word) => Ok(u64::from_ne_bytes(*word)),
            None => {
                let mut word = [0; 8];
                self.memory.read_exact_at(&mut word, at).map_err(drop)?;
                Ok(u64::from_ne_bytes(word))
            }
        }
    }
}
