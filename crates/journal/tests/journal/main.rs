//! Tests of the journal as its users see it: power cuts, full logs, damaged logs, and logs
//! exchanged with the kernel and e2fsprogs.

mod abort;
mod crash;
mod disk;
mod external;
mod fast;
mod fast_replay;
mod fuzz;
mod interop;
mod last_block;
mod load;
mod on_demand;
mod pressure;
mod recovered;
mod rng;
mod unreadable;
