/* The control of the gallery: a program that is run with this library preloaded asks for syncs, and
 * none is done. What is found then is what the syncs are for. Programs that make system calls
 * without the C library (those in Go) do not see it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

int fsync(int fd) { (void)fd; return 0; }
int fdatasync(int fd) { (void)fd; return 0; }
int syncfs(int fd) { (void)fd; return 0; }
void sync(void) {}
int msync(void *at, size_t length, int flags) { (void)at; (void)length; (void)flags; return 0; }
int sync_file_range(int fd, off64_t from, off64_t length, unsigned int flags)
{
    (void)fd; (void)from; (void)length; (void)flags;
    return 0;
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
