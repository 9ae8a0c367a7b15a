//! Tests of the journal as its users see it: power cuts, full logs, damaged logs, and logs
//! exchanged with the kernel and e2fsprogs.

mod abort;
mod crash;
mod disk;
mod external;
mod fast;
mod fuzz;
mod interop;
mod load;
mod on_demand;
mod pressure;
mod rng;
mod unreadable;
