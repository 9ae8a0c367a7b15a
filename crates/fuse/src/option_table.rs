//! The options of a mount through FUSE, each named once; the file system's own are the file
//! system's.

use steadfast_fuse_lowlevel::TransportChoice;
use steadfast_vfs::options::{Form, MountOption};
use steadfast_vfs::switch;

use crate::Options;

const MOUNT: &str = "mount";

/// The table.
pub static OPTIONS: &[MountOption<Options>] = &[
    switch! { MOUNT, allow_other, ["allow_other"], [], false,
    "for all users, within the permissions" },
    switch! { MOUNT, fake_root, ["fakeroot"], [], false,
    "whoever mounts it may do everything in it: permissions are not asked; not with allow_other" },
    switch! { MOUNT, dev, ["dev"], ["nodev"], true, "device nodes work" },
    switch! { MOUNT, suid, ["suid"], ["nosuid"], true, "set-id bits work" },
    switch! { MOUNT, no_exec, ["noexec"], ["exec"], true, "programs on it cannot be run" },
    switch! { MOUNT, no_symlinks, ["nosymfollow"], ["symfollow"], true,
    "symbolic links on it are not followed" },
    switch! { MOUNT, sync, ["sync"], ["async"], false,
    "every write and change of a name is durable when the call returns" },
    MountOption {
        of: MOUNT,
        form: Form::Number {
            key: "threads",
            shown: "N",
            range: 1..=256,
            // OK to cast: at most 256.
            set: |o, n| o.threads = n as usize,
            get: |o| o.threads as u64,
        },
        remount: false,
        help: "requests answered at the same time",
    },
    MountOption {
        of: MOUNT,
        form: Form::Choice {
            key: "transport",
            words: &["best", "uring", "fuse"],
            set: |o, word| {
                o.transport = match word {
                    "uring" => TransportChoice::Ring,
                    "fuse" => TransportChoice::Device,
                    _ => TransportChoice::Best,
                };
            },
            get: |o| match o.transport {
                TransportChoice::Best => "best",
                TransportChoice::Ring => "uring",
                TransportChoice::Device => "fuse",
            },
        },
        remount: false,
        help: "requests come over io_uring, over /dev/fuse, or over io_uring where that is there",
    },
    MountOption {
        of: MOUNT,
        form: Form::Size {
            key: "transport_memory",
            least: 1 << 20,
            set: |o, bytes| o.buffers = bytes,
            get: |o| Some(o.buffers),
        },
        remount: false,
        help: "memory that io_uring's requests have at most",
    },
    switch! { MOUNT, writeback_cache, ["writeback_cache"], [], false,
    "the kernel collects writes: faster, but commit= does not hold" },
    MountOption { of: MOUNT, form: WITHOUT_EFFECT, remount: true, help: "for others" },
];

/// Of mount(8), fstab(5) and mount.fuse(8).
const WITHOUT_EFFECT: Form<Options> = Form::WithoutEffect {
    words: &[
        "defaults",
        "auto",
        "noauto",
        "nofail",
        "_netdev",
        "user",
        "nouser",
        "users",
        "owner",
        "group",
        "loop",
        "nomand",
        "loud",
        "silent",
        "noiversion",
        "nolazytime",
        // Times of access kept in memory may be lost; ours are not.
        "lazytime",
        "default_permissions",
        // Of FUSE's library: how it goes about it, or what is so here in any case.
        "no_default_opts",
        "nonempty",
        "big_writes",
        "use_ino",
        "readdir_ino",
        "hard_remove",
        "clone_fd",
        "async_read",
        "atomic_o_trunc",
    ],
    keys: &[
        // What the table of mounts shows, and mount(8) hands back when it remounts.
        "user_id", "group_id", "rootmode", "blksize", "max_read", "comment", "fsname", "subtype",
    ],
    // Notes for systemd and others, not for whoever mounts.
    prefixes: &["x-", "X-"],
};
