//! Images go to and fro between us, e2fsprogs and the kernel. Needs root, for loop mounts.

mod acls;
mod block_maps;
mod casefold;
mod clusters;
mod concurrent;
mod directories;
mod encrypted;
mod features;
mod image;
mod large_blocks;
mod mmp;
mod modes;
mod names;
mod nodes;
mod quotas;
mod sequence;
mod sequences;
mod stage;
mod xattrs;
