//! JBD2: commit, checkpoint, recovery and revoke, on an internal or external log.
