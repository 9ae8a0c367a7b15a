//! A request's arguments, taken one after the other.

use std::fmt;

use zerocopy::{FromBytes, Immutable, KnownLayout};

/// A request that is not one: too short, or a name without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentError;

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request with fewer bytes than its arguments have")
    }
}

impl std::error::Error for ArgumentError {}

/// The bytes of arguments. Over io_uring the structure that an operation begins with stands apart
/// from what comes after it (`fuse_uring_args_to_ring`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a> {
    /// Where the first structure is, if it stands apart.
    apart: Option<&'a [u8]>,
    rest: &'a [u8],
}

impl<'a> Arguments<'a> {
    /// One after the other, as /dev/fuse gives them.
    pub fn contiguous(bytes: &'a [u8]) -> Arguments<'a> {
        Arguments { apart: None, rest: bytes }
    }

    /// As a ring's entry has them.
    pub fn of_ring(structure: &'a [u8], payload: &'a [u8]) -> Arguments<'a> {
        Arguments { apart: Some(structure), rest: payload }
    }

    /// The structure that the operation begins with.
    pub fn structure<T: FromBytes + KnownLayout + Immutable>(
        &mut self,
    ) -> Result<T, ArgumentError> {
        let (value, rest) =
            T::read_from_prefix(self.apart.unwrap_or(self.rest)).map_err(|_| ArgumentError)?;
        if self.apart.take().is_none() {
            self.rest = rest;
        }
        Ok(value)
    }

    /// A name, without the NUL at its end.
    pub fn name(&mut self) -> Result<&'a [u8], ArgumentError> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(ArgumentError)?;
        let (name, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Ok(name)
    }

    /// All that is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], ArgumentError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(ArgumentError)?;
        self.rest = rest;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_give_the_same() {
        let contiguous = [1, 0, 0, 0, b'a', b'b', 0, b'c', 0, 7, 8];
        let mut one = Arguments::contiguous(&contiguous);
        let mut other = Arguments::of_ring(&[1, 0, 0, 0, 9, 9, 9, 9], &contiguous[4..]);
        for arguments in [&mut one, &mut other] {
            assert_eq!(arguments.structure::<[u8; 4]>(), Ok([1, 0, 0, 0]));
            assert_eq!(arguments.name(), Ok(&b"ab"[..]));
            assert_eq!(arguments.name(), Ok(&b"c"[..]));
            assert_eq!(arguments.name(), Err(ArgumentError), "no end");
            assert_eq!(arguments.bytes(3), Err(ArgumentError));
            assert_eq!(arguments.bytes(2), Ok(&[7, 8][..]));
        }
        assert_eq!(Arguments::contiguous(&[0; 3]).structure::<[u8; 4]>(), Err(ArgumentError));
    }
}
