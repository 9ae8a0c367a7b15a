//! The names of errors, as strace prints them.

/// In the order of their numbers, from 1 (errno(3), Linux's `asm-generic/errno.h`). `-`: none.
const NAMES: &str = "EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM \
    EACCES EFAULT ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY \
    ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK \
    ENOSYS ENOTEMPTY ELOOP - ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI \
    EL2HLT EBADE EBADR EXFULL ENOANO EBADRQC EBADSLT - EBFONT ENOSTR ENODATA ETIME ENOSR ENONET \
    ENOPKG EREMOTE ENOLINK EADV ESRMNT ECOMM EPROTO EMULTIHOP EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ \
    EBADFD EREMCHG ELIBACC ELIBBAD ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS \
    ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT \
    EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET \
    ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT \
    ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL \
    EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED \
    EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON";

pub(super) const ENOENT: i64 = 2;
pub(super) const EEXIST: i64 = 17;
pub(super) const ENOTDIR: i64 = 20;
pub(super) const EISDIR: i64 = 21;
pub(super) const ENOTEMPTY: i64 = 39;

/// The number of an error's name.
pub(super) fn errno(name: &str) -> Option<i64> {
    let mut numbered = (1..).zip(NAMES.split_whitespace());
    numbered.find(|(_, known)| *known == name && name != "-").map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_numbers() {
        use rustix::io::Errno;
        for (name, number) in [
            ("EPERM", Errno::PERM),
            ("ECHILD", Errno::CHILD),
            ("ELOOP", Errno::LOOP),
            ("ENOMSG", Errno::NOMSG),
            ("ENODATA", Errno::NODATA),
            ("EOPNOTSUPP", Errno::OPNOTSUPP),
            ("ETIMEDOUT", Errno::TIMEDOUT),
            ("EDQUOT", Errno::DQUOT),
            ("EHWPOISON", Errno::HWPOISON),
        ] {
            assert_eq!(errno(name), Some(number.raw_os_error().into()), "{name}");
        }
        assert_eq!((errno("-"), errno("EODD"), errno("ENOENT")), (None, None, Some(ENOENT)));
        assert_eq!(errno("ENOTEMPTY"), Some(ENOTEMPTY));
    }
}
