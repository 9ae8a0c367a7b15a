//! Encryption: every encrypted inode has a context, and what is in an encrypted directory has the
//! directory's policy. Source: the kernel's fs/crypto, `Documentation/filesystems/fscrypt.rst`.

use std::collections::BTreeMap;

use steadfast_ext4_format::ondisk::{Incompat, InodeFlags, InodeNo, RawInode};
use steadfast_vfs::FileType;

use crate::FindingKind;
use crate::finding::Findings;
use crate::image::Image;

/// The prefix (`EXT4_XATTR_INDEX_ENCRYPTION`) and the name of the attribute with the context.
const CONTEXT_INDEX: u8 = 9;
const CONTEXT_NAME: &[u8] = b"c";

/// Bytes of a context by its version, and of the nonce at its end, which is each inode's own.
const CONTEXT_BYTES: [usize; 2] = [28, 40];
const NONCE_BYTES: usize = 16;

/// Shortest name that encryption makes (`FSCRYPT_FNAME_MIN_MSG_LEN`).
pub(super) const NAME_BYTES_MIN: usize = 16;

/// Whether an attribute is the context.
pub(super) fn is_context(index: u8, name: &[u8]) -> bool {
    index == CONTEXT_INDEX && name == CONTEXT_NAME
}

/// A policy, by its number; or that it cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncryptionPolicy {
    Known(u32),
    /// Of a version that is not known, or the context is missing or damaged.
    Unknown,
}

/// Policies of the encrypted inodes.
#[derive(Debug, Default)]
pub(super) struct Encryption {
    of: BTreeMap<InodeNo, EncryptionPolicy>,
    numbers: BTreeMap<Vec<u8>, u32>,
    /// The context of the inode that is being looked at.
    context: Option<Vec<u8>>,
}

impl Encryption {
    /// Keeps the context that the attributes of the present inode hold.
    pub(super) fn set_context(&mut self, context: Option<Vec<u8>>) {
        if context.is_some() {
            self.context = context;
        }
    }

    /// Forgets the context of the inode before.
    pub(super) fn begin(&mut self) {
        self.context = None;
    }

    /// Notes an inode's policy, once its attributes have been read.
    pub(super) fn note(
        &mut self,
        image: &Image,
        findings: &mut Findings,
        ino: InodeNo,
        inode: &RawInode,
    ) {
        let context = self.context.take();
        let on = image.layout.features.incompat.contains(Incompat::ENCRYPT);
        if !on || !inode.flags().contains(InodeFlags::ENCRYPTED) {
            return;
        }
        let policy = match context.as_deref().map(policy_of) {
            None => Err("it is encrypted, but has no encryption context"),
            Some(None) => Err("its encryption context is damaged"),
            Some(Some([])) => Ok(EncryptionPolicy::Unknown),
            Some(Some(policy)) => {
                let numbers = &mut self.numbers;
                // OK to cast: no more than inodes.
                let next = numbers.len() as u32;
                Ok(EncryptionPolicy::Known(*numbers.entry(policy.to_vec()).or_insert(next)))
            }
        };
        if let Err(text) = policy {
            let place = format_args!("inode {ino}");
            findings.add(FindingKind::Encryption, place, text);
        }
        self.of.insert(ino, policy.unwrap_or(EncryptionPolicy::Unknown));
    }

    /// What is wrong with an inode's policy in a directory.
    pub(super) fn problem(
        &self,
        dir: InodeNo,
        ino: InodeNo,
        kind: Option<FileType>,
    ) -> Option<&'static str> {
        use FileType::{Directory, Regular, Symlink};
        let EncryptionPolicy::Known(wanted) = self.of.get(&dir)? else { return None };
        if !matches!(kind, Some(Regular | Directory | Symlink)) {
            return None;
        }
        match self.of.get(&ino) {
            None => Some("which is not encrypted, as all in this directory must be"),
            Some(EncryptionPolicy::Known(policy)) if policy != wanted => {
                Some("which has another encryption policy than the directory")
            }
            _ => None,
        }
    }
}

/// The policy of a context without the nonce; `None`: the context is damaged. Empty: a version
/// that is not known.
fn policy_of(context: &[u8]) -> Option<&[u8]> {
    let version = usize::from(*context.first()?);
    // There is no version 0.
    match CONTEXT_BYTES.get(version.checked_sub(1)?) {
        Some(bytes) if *bytes == context.len() => Some(&context[..bytes - NONCE_BYTES]),
        Some(_) => None,
        None => Some(&[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_have_the_length_of_their_version() {
        let context = |version: u8, len: usize| [vec![version], vec![7; len - 1]].concat();
        assert_eq!(policy_of(&context(1, 28)).unwrap().len(), 12);
        assert_eq!(policy_of(&context(2, 40)).unwrap().len(), 24);
        assert_eq!(policy_of(&context(9, 3)), Some(&[][..]));
        for damaged in [&context(1, 40)[..], &context(2, 39), &context(0, 28), &[]] {
            assert_eq!(policy_of(damaged), None);
        }
    }
}
