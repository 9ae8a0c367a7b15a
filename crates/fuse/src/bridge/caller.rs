//! Who asks. A request names user, group and thread; supplementary groups and capabilities are
//! asked of /proc (proc_pid_status(5)), which is slow, so only where they decide. The thread waits
//! for its answer, so it is there; of one that is gone (or in a PID namespace that we do not see)
//! nothing is known, and it is given no rights.

use std::path::PathBuf;

use fuser::Request;

/// May keep set-id bits where others lose them (linux/capability.h).
const CAP_FSETID: u32 = 4;
/// Has a file's data journalled.
const CAP_SYS_RESOURCE: u32 = 24;
/// Sees trusted attributes, names file systems, shuts them down.
const CAP_SYS_ADMIN: u32 = 21;

/// The thread that a request is from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
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
    pub fn of(req: &Request) -> Caller {
        Caller { gid: req.gid(), pid: req.pid() }
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
        let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user"));
        let same = || Some(namespace(&self.pid.to_string()).ok()? == namespace("self").ok()?);
        let has = |r: Rights| r.capabilities >> capability & 1 != 0;
        self.rights().is_some_and(has) && same() == Some(true)
    }

    fn rights(self) -> Option<Rights> {
        let path: PathBuf = ["/proc", &self.pid.to_string(), "status"].iter().collect();
        parse(&std::fs::read_to_string(path).ok()?)
    }
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
        let gone = Caller { gid: 8, pid: 0 };
        assert!(!gone.sees_trusted() && !gone.keeps_set_id() && !gone.belongs_to(7));
        assert!(gone.belongs_to(8));
    }
}
