//! Copies to and from memory that may be poisoned, and the instructions that make stores durable.
//!
//! * A *stream* is made of non-temporal stores: they bypass the caches, and are in the power-fail
//!   domain after a fence. For whole lines they are the fastest.
//! * A *store* is made of ordinary stores, of whole 8-byte words where it is aligned, so that a
//!   power cut leaves each word old or new. Its lines are written back by `clwb`, `clflushopt` or
//!   `clflush`, the first that the processor has (Intel SDM, volume 2).
//! * Reading poison, or touching a page of a truncated file, raises SIGBUS. The copies here are
//!   single functions whose instructions the handler knows: it makes them return an error. A SIGBUS
//!   from anywhere else goes to the previous handler.
//!
//! On processors other than x86-64 copies are ordinary ones, a SIGBUS ends the process, and lines
//! are written back by `msync`, which the owner of the mapping calls
//! ([`writes_back`] says so).

#![allow(unsafe_code, reason = "instructions and signal handlers have no safe form")]

/// A cache line, in bytes.
pub(super) const LINE: usize = 64;

/// Memory answered with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryFailure;

/// How the processor writes lines back, for people; `None`: it is not known here how.
pub(super) fn writes_back() -> Option<&'static str> {
    imp::write_back().map(imp::WriteBack::name)
}

/// Copies `len` bytes from memory that may be poisoned.
///
/// # Safety
/// `from` is mapped for `len` bytes, though it may be poisoned; `to` is valid for as many, and
/// apart from it.
// SAFETY: the caller's promise is above.
pub(super) unsafe fn load(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
    // SAFETY: as the caller promises.
    unsafe { imp::load(to, from, len) }
}

/// Stores `len` bytes; aligned words of 8 bytes at a time, and aligned parts of 4 and 2 bytes of
/// the first and last word.
///
/// # Safety
/// As [`load`], the other way around.
// SAFETY: the caller's promise is above.
pub(super) unsafe fn store(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
    // SAFETY: as the caller promises.
    unsafe { imp::store(to, from, len) }
}

/// Stores whole lines past the caches: durable after [`fence`].
///
/// # Safety
/// As [`store`]; `to` and `len` are multiples of [`LINE`].
// SAFETY: the caller's promise is above.
pub(super) unsafe fn stream(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
    debug_assert!((to as usize).is_multiple_of(LINE) && len.is_multiple_of(LINE));
    // SAFETY: as the caller promises.
    unsafe { imp::stream(to, from, len) }
}

/// Starts to write back the lines of `len` bytes.
///
/// # Safety
/// They are mapped, though they may be poisoned.
// SAFETY: the caller's promise is above.
pub(super) unsafe fn write_back(at: *const u8, len: usize) -> Result<(), MemoryFailure> {
    // SAFETY: as the caller promises.
    unsafe { imp::write_lines_back(at, len) }
}

/// Returns when what was streamed and written back is in the power-fail domain.
pub(super) fn fence() {
    imp::fence();
}

/// Lets copies from poisoned memory end with an error instead of the process. Once a process.
pub(super) fn catch_poison() {
    imp::catch_poison();
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod imp {
    use std::arch::{asm, global_asm};
    use std::sync::OnceLock;

    use super::{LINE, MemoryFailure};

    // Each is a leaf that does not touch the stack, so the handler can send it to its end from any
    // instruction: it returns 1 then, 0 otherwise. Arguments: to (rdi), from (rsi), bytes (rdx).
    global_asm!(
        ".pushsection .text.steadfast_pmem, \"ax\", @progbits",
        ".p2align 6",
        ".hidden steadfast_pmem_begin",
        ".globl steadfast_pmem_begin",
        "steadfast_pmem_begin:",
        ".hidden steadfast_pmem_load",
        ".globl steadfast_pmem_load",
        ".type steadfast_pmem_load, @function",
        "steadfast_pmem_load:",
        "mov rcx, rdx",
        "rep movsb",
        "xor eax, eax",
        "ret",
        ".size steadfast_pmem_load, . - steadfast_pmem_load",
        ".p2align 4",
        ".hidden steadfast_pmem_store",
        ".globl steadfast_pmem_store",
        ".type steadfast_pmem_store, @function",
        "steadfast_pmem_store:",
        // Bytes up to a word's border.
        "2:",
        "test rdx, rdx",
        "jz 5f",
        "test dil, 7",
        "jz 3f",
        // Aligned halves and quarters of a word are one store each.
        "test dil, 3",
        "jnz 22f",
        "cmp rdx, 4",
        "jb 22f",
        "mov eax, dword ptr [rsi]",
        "mov dword ptr [rdi], eax",
        "add rsi, 4",
        "add rdi, 4",
        "sub rdx, 4",
        "jmp 2b",
        "22:",
        "test dil, 1",
        "jnz 23f",
        "cmp rdx, 2",
        "jb 23f",
        "mov ax, word ptr [rsi]",
        "mov word ptr [rdi], ax",
        "add rsi, 2",
        "add rdi, 2",
        "sub rdx, 2",
        "jmp 2b",
        "23:",
        "mov al, byte ptr [rsi]",
        "mov byte ptr [rdi], al",
        "inc rsi",
        "inc rdi",
        "dec rdx",
        "jmp 2b",
        // Words.
        "3:",
        "cmp rdx, 8",
        "jb 4f",
        "mov rax, qword ptr [rsi]",
        "mov qword ptr [rdi], rax",
        "add rsi, 8",
        "add rdi, 8",
        "sub rdx, 8",
        "jmp 3b",
        // The rest.
        "4:",
        "cmp rdx, 4",
        "jb 24f",
        "mov eax, dword ptr [rsi]",
        "mov dword ptr [rdi], eax",
        "add rsi, 4",
        "add rdi, 4",
        "sub rdx, 4",
        "24:",
        "cmp rdx, 2",
        "jb 25f",
        "mov ax, word ptr [rsi]",
        "mov word ptr [rdi], ax",
        "add rsi, 2",
        "add rdi, 2",
        "sub rdx, 2",
        "25:",
        "test rdx, rdx",
        "jz 5f",
        "mov al, byte ptr [rsi]",
        "mov byte ptr [rdi], al",
        "inc rsi",
        "inc rdi",
        "dec rdx",
        "jmp 4b",
        "5:",
        "xor eax, eax",
        "ret",
        ".size steadfast_pmem_store, . - steadfast_pmem_store",
        ".p2align 4",
        ".hidden steadfast_pmem_stream",
        ".globl steadfast_pmem_stream",
        ".type steadfast_pmem_stream, @function",
        "steadfast_pmem_stream:",
        "6:",
        "test rdx, rdx",
        "jz 7f",
        "movdqu xmm0, xmmword ptr [rsi]",
        "movdqu xmm1, xmmword ptr [rsi + 16]",
        "movdqu xmm2, xmmword ptr [rsi + 32]",
        "movdqu xmm3, xmmword ptr [rsi + 48]",
        "movntdq xmmword ptr [rdi], xmm0",
        "movntdq xmmword ptr [rdi + 16], xmm1",
        "movntdq xmmword ptr [rdi + 32], xmm2",
        "movntdq xmmword ptr [rdi + 48], xmm3",
        "add rsi, 64",
        "add rdi, 64",
        "sub rdx, 64",
        "jmp 6b",
        "7:",
        "xor eax, eax",
        "ret",
        // Lines to write back: from (rdi), how many (rsi).
        ".size steadfast_pmem_stream, . - steadfast_pmem_stream",
        ".p2align 4",
        ".hidden steadfast_pmem_clwb",
        ".globl steadfast_pmem_clwb",
        ".type steadfast_pmem_clwb, @function",
        "steadfast_pmem_clwb:",
        "26:",
        "test rsi, rsi",
        "jz 7b",
        "clwb [rdi]",
        "add rdi, 64",
        "dec rsi",
        "jmp 26b",
        ".size steadfast_pmem_clwb, . - steadfast_pmem_clwb",
        ".p2align 4",
        ".hidden steadfast_pmem_clflushopt",
        ".globl steadfast_pmem_clflushopt",
        ".type steadfast_pmem_clflushopt, @function",
        "steadfast_pmem_clflushopt:",
        "27:",
        "test rsi, rsi",
        "jz 7b",
        "clflushopt [rdi]",
        "add rdi, 64",
        "dec rsi",
        "jmp 27b",
        ".size steadfast_pmem_clflushopt, . - steadfast_pmem_clflushopt",
        ".p2align 4",
        ".hidden steadfast_pmem_clflush",
        ".globl steadfast_pmem_clflush",
        ".type steadfast_pmem_clflush, @function",
        "steadfast_pmem_clflush:",
        "28:",
        "test rsi, rsi",
        "jz 7b",
        "clflush [rdi]",
        "add rdi, 64",
        "dec rsi",
        "jmp 28b",
        ".size steadfast_pmem_clflush, . - steadfast_pmem_clflush",
        ".hidden steadfast_pmem_end",
        ".globl steadfast_pmem_end",
        "steadfast_pmem_end:",
        ".hidden steadfast_pmem_poisoned",
        ".globl steadfast_pmem_poisoned",
        "steadfast_pmem_poisoned:",
        "mov eax, 1",
        "ret",
        ".popsection",
    );

    // SAFETY: these are the labels above, with these arguments.
    unsafe extern "sysv64" {
        fn steadfast_pmem_load(to: *mut u8, from: *const u8, len: usize) -> u32;
        fn steadfast_pmem_store(to: *mut u8, from: *const u8, len: usize) -> u32;
        fn steadfast_pmem_stream(to: *mut u8, from: *const u8, len: usize) -> u32;
        fn steadfast_pmem_clwb(from: usize, lines: usize) -> u32;
        fn steadfast_pmem_clflushopt(from: usize, lines: usize) -> u32;
        fn steadfast_pmem_clflush(from: usize, lines: usize) -> u32;
        safe static steadfast_pmem_begin: u8;
        safe static steadfast_pmem_end: u8;
        safe static steadfast_pmem_poisoned: u8;
    }

    fn checked(answer: u32) -> Result<(), MemoryFailure> {
        if answer == 0 { Ok(()) } else { Err(MemoryFailure) }
    }

    // SAFETY: as for `super::load`.
    pub unsafe fn load(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
        // SAFETY: the caller's promise; the function touches nothing else.
        checked(unsafe { steadfast_pmem_load(to, from, len) })
    }

    // SAFETY: as for `super::store`.
    pub unsafe fn store(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
        // SAFETY: the caller's promise; the function touches nothing else.
        checked(unsafe { steadfast_pmem_store(to, from, len) })
    }

    // SAFETY: as for `super::stream`.
    pub unsafe fn stream(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
        // SAFETY: the caller's promise; the function touches nothing else.
        checked(unsafe { steadfast_pmem_stream(to, from, len) })
    }

    #[derive(Clone, Copy)]
    pub enum WriteBack {
        Clwb,
        ClFlushOpt,
        ClFlush,
    }

    impl WriteBack {
        pub fn name(self) -> &'static str {
            match self {
                WriteBack::Clwb => "clwb",
                WriteBack::ClFlushOpt => "clflushopt",
                WriteBack::ClFlush => "clflush",
            }
        }
    }

    /// Every x86-64 processor has one.
    #[allow(clippy::unnecessary_wraps, reason = "other processors have none that is known here")]
    pub fn write_back() -> Option<WriteBack> {
        Some(best())
    }

    fn best() -> WriteBack {
        static BEST: OnceLock<WriteBack> = OnceLock::new();
        *BEST.get_or_init(|| {
            // Leaf 7: EBX bit 24 is clwb, bit 23 clflushopt (Intel SDM, CPUID).
            // SAFETY: every x86-64 processor has CPUID, and leaf 7 is asked for where it is there.
            #[allow(unused_unsafe, reason = "safe for later compilers than `rust-version`")]
            let ebx = unsafe {
                let has_leaf = std::arch::x86_64::__cpuid(0).eax >= 7;
                if has_leaf { std::arch::x86_64::__cpuid_count(7, 0).ebx } else { 0 }
            };
            match ebx {
                _ if ebx & 1 << 24 != 0 => WriteBack::Clwb,
                _ if ebx & 1 << 23 != 0 => WriteBack::ClFlushOpt,
                _ => WriteBack::ClFlush,
            }
        })
    }

    // SAFETY: as for `super::write_back`.
    pub unsafe fn write_lines_back(at: *const u8, len: usize) -> Result<(), MemoryFailure> {
        let from = at as usize / LINE * LINE;
        let lines = (at as usize + len - from).div_ceil(LINE);
        // SAFETY: the lines are mapped, and their contents stay as they are. The processor has the
        // instruction.
        checked(unsafe {
            match best() {
                WriteBack::Clwb => steadfast_pmem_clwb(from, lines),
                WriteBack::ClFlushOpt => steadfast_pmem_clflushopt(from, lines),
                WriteBack::ClFlush => steadfast_pmem_clflush(from, lines),
            }
        })
    }

    pub fn fence() {
        // SAFETY: it touches nothing.
        unsafe { asm!("sfence", options(nostack, preserves_flags)) }
    }

    /// `si_code`: memory has failed that nobody touches (Linux, asm-generic/siginfo.h).
    const BUS_MCEERR_AO: i32 = 5;

    /// Who had SIGBUS before.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    pub fn catch_poison() {
        BEFORE.get_or_init(|| {
            // SAFETY: a structure of numbers; zero is a value of each.
            let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
            ours.sa_sigaction = handler as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            // SAFETY: as above.
            let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: both are valid. The handler keeps to what a handler may do. If it is refused,
            // poison ends the process, as it did.
            unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut before) };
            before
        });
    }

    extern "C" fn on_bus_error(
        signal: i32,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        let address = |label: &'static u8| &raw const *label as i64;
        let copies = address(&steadfast_pmem_begin)..address(&steadfast_pmem_end);
        // SAFETY: with SA_SIGINFO the kernel says what the signal is about.
        let code = unsafe { (*info).si_code };
        // Sent by somebody, or news of memory that nobody has touched yet.
        let is_sent = code <= 0 || code == BUS_MCEERR_AO;
        // SAFETY: with SA_SIGINFO the kernel gives the context of what was interrupted.
        let at = unsafe {
            let context = context.cast::<libc::ucontext_t>();
            &mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize]
        };
        if !is_sent && copies.contains(at) {
            *at = address(&steadfast_pmem_poisoned);
            return;
        }
        let Some(before) = BEFORE.get() else { return default(signal, is_sent) };
        let handler = before.sa_sigaction;
        match handler {
            libc::SIG_IGN if is_sent => {}
            libc::SIG_DFL | libc::SIG_IGN => default(signal, is_sent),
            _ if before.sa_flags & libc::SA_SIGINFO != 0 => {
                // SAFETY: whoever installed it said that it is such a function.
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                    unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            }
            _ => {
                // SAFETY: as above.
                let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
        }
    }

    /// Ends the process: what was interrupted is tried again, or the signal is sent again.
    fn default(signal: i32, is_sent: bool) {
        // SAFETY: calls that a handler may make.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            if is_sent {
                libc::raise(signal);
            }
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod imp {
    use super::MemoryFailure;

    // SAFETY: as for `super::load`.
    pub unsafe fn load(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
        Ok(())
    }

    // SAFETY: as for `super::store`.
    pub unsafe fn store(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
        // SAFETY: the caller's promise.
        unsafe { load(to, from, len) }
    }

    // SAFETY: as for `super::stream`.
    pub unsafe fn stream(to: *mut u8, from: *const u8, len: usize) -> Result<(), MemoryFailure> {
        // SAFETY: the caller's promise.
        unsafe { load(to, from, len) }
    }

    pub enum WriteBack {}

    impl WriteBack {
        pub fn name(self) -> &'static str {
            match self {}
        }
    }

    pub fn write_back() -> Option<WriteBack> {
        None
    }

    // SAFETY: it touches nothing.
    pub unsafe fn write_lines_back(_: *const u8, _: usize) -> Result<(), MemoryFailure> {
        Ok(())
    }

    pub fn fence() {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    pub fn catch_poison() {}
}
