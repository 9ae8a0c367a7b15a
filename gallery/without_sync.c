/* The control of the gallery: what is run with this library preloaded asks for syncs, and none is
 * done. What is found then is what the syncs are for. The calls that sync are answered with 0 by a
 * filter of system calls, which what is started inherits: so programs without the C library, as those
 * in Go, ask in vain, too. Flags that sync are taken from what the C library is called with. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The programs are those of this machine: they have its numbers of system calls. */
#define IF(call, steps) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, steps, 0)

__attribute__((constructor)) static void answer_syncs(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        IF(fsync, 6),
        IF(fdatasync, 5),
        IF(syncfs, 4),
        IF(sync, 3),
        IF(msync, 2),
        IF(sync_file_range, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    /* Once is enough: those that are started by one that has it need none of their own. */
    if (getenv("GALLERY_ANSWERS_SYNCS"))
        return;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        abort();
    setenv("GALLERY_ANSWERS_SYNCS", "1", 1);
}

/* The function of the C library. */
static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

/* O_SYNC has the bit of O_DSYNC. */
#define FLAGS (flags & ~O_SYNC)
#define MODE(last)                                                            \
    mode_t mode = 0;                                                          \
    if (flags & (O_CREAT | O_TMPFILE)) {                                      \
        va_list rest;                                                         \
        va_start(rest, last);                                                 \
        mode = va_arg(rest, mode_t);                                          \
        va_end(rest);                                                         \
    }

#define OPEN(name)                                                            \
    int name(const char *path, int flags, ...)                                \
    {                                                                         \
        MODE(flags)                                                           \
        return ((int (*)(const char *, int, ...))next(#name))(path, FLAGS, mode); \
    }
#define OPENAT(name)                                                          \
    int name(int at, const char *path, int flags, ...)                        \
    {                                                                         \
        MODE(flags)                                                           \
        return ((int (*)(int, const char *, int, ...))next(#name))(at, path, FLAGS, mode); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define PWRITEV2(name, offset)                                                \
    ssize_t name(int fd, const struct iovec *from, int count, offset at, int flags) \
    {                                                                         \
        ssize_t (*real)(int, const struct iovec *, int, offset, int) = next(#name); \
        return real(fd, from, count, at, flags & ~(RWF_SYNC | RWF_DSYNC));    \
    }
PWRITEV2(pwritev2, off_t)
PWRITEV2(pwritev64v2, off64_t)
