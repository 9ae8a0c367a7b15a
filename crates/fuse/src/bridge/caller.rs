//! Who asks. A request names user, group and thread; supplementary groups and capabilities are
//! asked of /proc (proc_pid_status(5)), which is slow, so only where they decide. The thread waits
//! for its answer, so it is there; of one that is gone (or in a PID namespace that we do not see)
//! nothing is known, and it is given no rights.

use std::path::PathBuf;

use steadfast_fuse_lowlevel::InHeader;

/// May do what an owner may (linux/capability.h).
const CAP_FOWNER: u32 = 3;
/// May keep set-id bits where others lose them.
const CAP_FSETID: u32 = 4;
/// Makes inodes immutable and append-only, and takes that back.
const CAP_LINUX_IMMUTABLE: u32 = 9;
/// Has a file's data journalled.
const CAP_SYS_RESOURCE: u32 = 24;
/// Sees trusted attributes, names file systems, shuts them down.
const CAP_SYS_ADMIN: u32 = 21;

/// The thread that a request is from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    uid: u32,
    gid: u32,
    pid: u32,
}

/// What /proc says of it.
#[derive(Debug, PartialEq, Eq)]
struct Rights {
    groups: Vec<u32>,
    capabilities: u64,
}

impl Caller {
    /// Who sent it.
    pub fn of(asked: &InHeader) -> Caller {
        Caller { uid: asked.uid, gid: asked.gid, pid: asked.pid }
    }

    /// Whether a write leaves set-id bits alone.
    pub fn keeps_set_id(self) -> bool {
        self.is_capable(CAP_FSETID)
    }

    /// Whether set-group-id of this group may be set and kept: a member, or CAP_FSETID.
    pub fn belongs_to(self, gid: u32) -> bool {
        let is_member = self.gid == gid || self.rights().is_some_and(|r| r.groups.contains(&gid));
        is_member || self.keeps_set_id()
    }

    /// Whether it may do with an inode of this user what only its owner may
    /// (`inode_owner_or_capable`): in a user namespace of its own also with those that have a
    /// number there.
    pub fn acts_for(self, uid: u32) -> bool {
        let is_capable = || self.rights().is_some_and(|r| r.has(CAP_FOWNER));
        let knows = || self.is_in_our_namespace() || self.has_number(uid);
        self.uid == uid || (is_capable() && knows())
    }

    /// Whether it may make inodes immutable and append-only.
    pub fn protects(self) -> bool {
        self.is_capable(CAP_LINUX_IMMUTABLE)
    }

    /// Whether it may do what concerns the file system as a whole.
    pub fn administers(self) -> bool {
        self.is_capable(CAP_SYS_ADMIN)
    }

    /// Whether it may say that a file's data goes through the journal (`ext4_ioctl_setflags`).
    pub fn journals_data(self) -> bool {
        self.is_capable(CAP_SYS_RESOURCE)
    }

    /// Whether trusted attributes are for it.
    pub fn sees_trusted(self) -> bool {
        self.is_capable(CAP_SYS_ADMIN)
    }

    /// In our user namespace: in one of its own anybody has all capabilities.
    fn is_capable(self, capability: u32) -> bool {
        self.rights().is_some_and(|r| r.has(capability)) && self.is_in_our_namespace()
    }

    /// Whether its user namespace is ours.
    pub fn is_in_our_namespace(self) -> bool {
        let namespace = |of: PathBuf| std::fs::read_link(of.join("ns/user")).ok();
        let ours = namespace("/proc/self".into());
        ours.is_some() && ours == namespace(self.process())
    }

    /// Whether a user of ours has a number in its user namespace, which is another than ours.
    fn has_number(self, uid: u32) -> bool {
        let map = std::fs::read_to_string(self.process().join("uid_map"));
        map.is_ok_and(|map| is_mapped(&map, uid))
    }

    fn rights(self) -> Option<Rights> {
        parse(&std::fs::read_to_string(self.process().join("status")).ok()?)
    }

    fn process(self) -> PathBuf {
        ["/proc", &self.pid.to_string()].iter().collect()
    }
}

impl Rights {
    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 != 0
    }
}

/// Whether a number of ours is one of those that stand second in the lines of a map of users
/// (user_namespaces(7)).
fn is_mapped(map: &str, uid: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().skip(1).map(str::parse::<u64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(first)), Some(Ok(count))) => {
                (first..first.saturating_add(count)).contains(&uid.into())
            }
            _ => false,
        }
    })
}

fn parse(status: &str) -> Option<Rights> {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let groups = field("Groups:")?.split_whitespace().map(|g| g.parse().ok());
    let capabilities = u64::from_str_radix(field("CapEff:")?.trim(), 16).ok()?;
    Some(Rights { groups: groups.collect::<Option<_>>()?, capabilities })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_capabilities_are_found() {
        let status = "Name:\tsh\nGid:\t7\t7\t7\t7\nGroups:\t5 1001 \nCapEff:\t0000000000200010\n";
        let rights = parse(status).unwrap();
        assert_eq!(rights, Rights { groups: vec![5, 1001], capabilities: 1 << 21 | 1 << 4 });
        assert_eq!(parse("Groups:\tx\nCapEff:\t0\n"), None);
        assert_eq!(parse("Groups:\t\n"), None);
    }

    #[test]
    fn who_is_gone_has_no_rights() {
        // Thread 0 is nobody's.
        let gone = Caller { uid: 7, gid: 8, pid: 0 };
        assert!(!gone.sees_trusted() && !gone.keeps_set_id() && !gone.belongs_to(7));
        assert!(!gone.acts_for(8) && !gone.protects());
        assert!(gone.belongs_to(8) && gone.acts_for(7));
    }

    #[test]
    fn a_user_namespace_has_numbers_for_some_users() {
        let map = "         0       1000          1\n         1     100000      65536\n";
        assert!(is_mapped(map, 1000) && is_mapped(map, 100_000) && is_mapped(map, 165_535));
        assert!(!is_mapped(map, 0) && !is_mapped(map, 1001) && !is_mapped(map, 165_536));
        assert!(is_mapped("0 0 4294967295", u32::MAX - 1) && !is_mapped("0 x", 0));
        // Our own, of this process.
        let us = Caller { uid: 7, gid: 8, pid: std::process::id() };
        assert!(us.is_in_our_namespace());
    }
}
