//! Mounts as a person uses them: mounted, used, killed, unmounted; e2fsck has the last word.
//! As root, on a kernel with FUSE: otherwise the tests say SKIPPED.

#[path = "mount/basics.rs"]
mod basics;
#[path = "mount/bench.rs"]
mod bench;
#[path = "mount/by_mount8.rs"]
mod by_mount8;
#[path = "mount/calls.rs"]
mod calls;
#[path = "mount/casefold.rs"]
mod casefold;
#[path = "mount/damage.rs"]
mod damage;
#[path = "mount/failing.rs"]
mod failing;
#[path = "mount/foreign.rs"]
mod foreign;
#[path = "mount/fuse2fs.rs"]
mod fuse2fs;
#[path = "mount/in_flight.rs"]
mod in_flight;
#[path = "mount/ioctls.rs"]
mod ioctls;
#[path = "mount/memory.rs"]
mod memory;
#[path = "mount/places.rs"]
mod places;
#[path = "mount/pmem.rs"]
mod pmem;
#[path = "mount/programs.rs"]
mod programs;
#[path = "mount/protected.rs"]
mod protected;
#[path = "mount/refused.rs"]
mod refused;
#[path = "mount/transact.rs"]
mod transact;
#[path = "mount/trouble.rs"]
mod trouble;
#[path = "mount/user.rs"]
mod user;
#[path = "mount/volumes.rs"]
mod volumes;
