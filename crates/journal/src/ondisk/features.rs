//! Feature bits of the journal superblock.

use crate::{JournalError, Result};

/// Feature bits of the journal superblock (kernel: `s_feature_compat`, `s_feature_incompat`,
/// `s_feature_ro_compat`). A version-1 superblock has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalFeatures {
    /// `s_feature_compat`
    pub compat: u32,
    /// `s_feature_incompat`
    pub incompat: u32,
    /// `s_feature_ro_compat`
    pub ro_compat: u32,
}

/// How a journal protects its blocks; the three versions exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksums {
    /// Not at all.
    #[default]
    None,
    /// `COMPAT_CHECKSUM`: the commit block sums the descriptor and logged blocks (CRC-32).
    V1,
    /// `INCOMPAT_CSUM_V2`: CRC-32C in every control block, 16 bits of it for a logged block.
    V2,
    /// `INCOMPAT_CSUM_V3`: CRC-32C in every control block, 32 bits of it for a logged block.
    V3,
}

impl JournalFeatures {
    /// `JBD2_FEATURE_COMPAT_CHECKSUM`
    pub const COMPAT_CHECKSUM: u32 = 0x1;
    /// `JBD2_FEATURE_INCOMPAT_REVOKE`
    pub const REVOKE: u32 = 0x1;
    /// `JBD2_FEATURE_INCOMPAT_64BIT`
    pub const WIDE: u32 = 0x2;
    /// `JBD2_FEATURE_INCOMPAT_ASYNC_COMMIT`
    pub const ASYNC_COMMIT: u32 = 0x4;
    /// `JBD2_FEATURE_INCOMPAT_CSUM_V2`
    pub const CSUM_V2: u32 = 0x8;
    /// `JBD2_FEATURE_INCOMPAT_CSUM_V3`
    pub const CSUM_V3: u32 = 0x10;
    /// `JBD2_FEATURE_INCOMPAT_FAST_COMMIT`
    pub const FAST_COMMIT: u32 = 0x20;

    const KNOWN_INCOMPAT: u32 = 0x3f;

    /// Whether all bits of `mask` are set among the incompatible features.
    pub fn has_incompat(&self, mask: u32) -> bool {
        self.incompat & mask == mask
    }

    /// How blocks are protected. With bits that exclude each other, the newest wins;
    /// [`validate`](Self::validate) refuses such sets.
    pub fn checksums(&self) -> Checksums {
        if self.has_incompat(JournalFeatures::CSUM_V3) {
            Checksums::V3
        } else if self.has_incompat(JournalFeatures::CSUM_V2) {
            Checksums::V2
        } else if self.compat & JournalFeatures::COMPAT_CHECKSUM != 0 {
            Checksums::V1
        } else {
            Checksums::None
        }
    }

    /// Sets how blocks are protected.
    pub fn set_checksums(&mut self, checksums: Checksums) {
        self.compat &= !JournalFeatures::COMPAT_CHECKSUM;
        self.incompat &= !(JournalFeatures::CSUM_V2 | JournalFeatures::CSUM_V3);
        match checksums {
            Checksums::None => {}
            Checksums::V1 => self.compat |= JournalFeatures::COMPAT_CHECKSUM,
            Checksums::V2 => self.incompat |= JournalFeatures::CSUM_V2,
            Checksums::V3 => self.incompat |= JournalFeatures::CSUM_V3,
        }
    }

    /// Sets or clears incompatible features.
    pub fn set_incompat(&mut self, mask: u32, on: bool) {
        self.incompat = if on { self.incompat | mask } else { self.incompat & !mask };
    }

    /// Names as dumpe2fs prints them.
    pub fn names(&self) -> Vec<String> {
        const INCOMPAT: [&str; 6] = [
            "journal_incompat_revoke",
            "journal_64bit",
            "journal_async_commit",
            "journal_checksum_v2",
            "journal_checksum_v3",
            "fast_commit",
        ];
        let bits = |word: u32| (0..32).filter(move |bit| word >> bit & 1 != 0);
        let compat = bits(self.compat).map(|bit| match bit {
            0 => "journal_checksum".to_string(),
            n => format!("FEATURE_C{n}"),
        });
        let incompat = bits(self.incompat).map(|bit| match INCOMPAT.get(bit as usize) {
            Some(name) => (*name).to_string(),
            None => format!("FEATURE_I{bit}"),
        });
        let ro_compat = bits(self.ro_compat).map(|bit| format!("FEATURE_R{bit}"));
        compat.chain(incompat).chain(ro_compat).collect()
    }

    /// Refuses unknown incompatible or read-only-compatible features, by name, and checksum
    /// versions that exclude each other. Unknown compatible features are harmless.
    pub fn validate(&self) -> Result<()> {
        let unknown = JournalFeatures {
            compat: 0,
            incompat: self.incompat & !JournalFeatures::KNOWN_INCOMPAT,
            ro_compat: self.ro_compat,
        };
        if unknown != JournalFeatures::default() {
            return Err(JournalError::Unsupported { what: unknown.names().join(", ") });
        }
        let versions = [
            self.compat & JournalFeatures::COMPAT_CHECKSUM != 0,
            self.has_incompat(JournalFeatures::CSUM_V2),
            self.has_incompat(JournalFeatures::CSUM_V3),
        ];
        if versions.iter().filter(|set| **set).count() > 1 {
            return Err(JournalError::corrupt(
                "checksum versions that exclude each other are set together",
                "journal superblock",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_features_are_named() {
        let f = JournalFeatures { incompat: 0x43, ..JournalFeatures::default() };
        let err = f.validate().unwrap_err().to_string();
        assert!(err.contains("FEATURE_I6") && !err.contains("revoke"), "{err}");
        let both = JournalFeatures { incompat: 0x18, ..JournalFeatures::default() };
        assert!(matches!(both.validate(), Err(JournalError::Corrupt { .. })));
    }

    #[test]
    fn checksum_versions_exclude_each_other() {
        let mut f = JournalFeatures { compat: 1, incompat: 0x3, ro_compat: 0 };
        for c in [Checksums::V3, Checksums::V2, Checksums::V1, Checksums::None] {
            f.set_checksums(c);
            assert_eq!(f.checksums(), c);
            f.validate().unwrap();
        }
        assert_eq!(f.names(), ["journal_incompat_revoke", "journal_64bit"]);
    }
}
