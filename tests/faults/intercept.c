/* Preloaded before the C library: records the calls by which a process changes a folder, and lets one
 * of them fail or the process end there. `arm` begins the record; calls before it are not touched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KILL = -1, FULL = -2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static int record = -1, armed, count, target, action, full;

static void put(const void *data, size_t length) { syscall(SYS_write, record, data, length); }

/* Records from now on the calls below `under` in the file `log`. The call with the number `at` fails
 * with the error `what`; KILL ends the process before the call, FULL fills the disk at the call. */
void arm(const char *under, const char *log, int at, int what) {
    record = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    snprintf(folder, sizeof folder, "%s", under);
    target = at, action = what, count = full = 0, armed = 1;
}

/* Adds a line of the process itself to the record. */
void note(const char *text) {
    char line[1 << 16];
    int length = snprintf(line, sizeof line, "note\t%s\t\t0\t0\n", text);
    if (armed) put(line, length);
}

/* Also of the folder itself; its name in `folder` ends with a slash. */
static int within(const char *path) {
    size_t length = strlen(folder) - 1;
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static void absolute(int at, const char *path, char *out) {
    char base[PATH_MAX] = "";
    if (path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        ssize_t n = readlink(link, base, sizeof base - 2);
        if (n > 0) strcpy(base + n, "/");
    }
    snprintf(out, PATH_MAX, "%s%s", base, path);
}

static void of(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = 0;
}

/* Counts a call. Returns the error with which it must fail; 0 if it must be made. */
static int gate(const char *kind) {
    int number = count++, writes = !strcmp(kind, "write") || !strcmp(kind, "create") || !strcmp(kind, "mkdir");
    if (number == target && action == KILL) kill(getpid(), SIGKILL);
    full |= number >= target && action == FULL && writes;
    if (full && writes) return ENOSPC;
    return number == target && action > 0 ? action : 0;
}

static void line(const char *kind, const char *one, const char *two, long at, size_t length) {
    char text[3 * PATH_MAX];
    put(text, snprintf(text, sizeof text, "%s\t%s\t%s\t%ld\t%zu\n", kind, one, two, at, length));
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define WATCHED(kind, one, two, at, call)                                  \
    if (!armed || !within(one)) return call;                               \
    pthread_mutex_lock(&lock);                                             \
    int error = gate(kind);                                                \
    long result = error ? -1 : (long)(call);                               \
    error = error ? error : errno;                                         \
    if (result >= 0) line(kind, one, two, at, 0);                          \
    else if (error) line("failed", kind, one, error, 0);                   \
    pthread_mutex_unlock(&lock);                                           \
    errno = error;                                                         \
    return result

#define OPENS(name, place, head, call)                                     \
    int name(head, const char *path, int flags, ...) {                     \
        REAL(name);                                                        \
        va_list rest;                                                      \
        va_start(rest, flags);                                             \
        int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;  \
        va_end(rest);                                                      \
        char one[PATH_MAX];                                                \
        absolute(place, path, one);                                        \
        struct stat there;                                                 \
        int is_new = !!(flags & O_CREAT) && stat(one, &there) < 0;         \
        if (!is_new && !(flags & O_TRUNC)) return call;                    \
        WATCHED("create", one, "", is_new, call);                          \
    }

int open(const char *path, int flags, ...) __attribute__((alias("open64")));
int open64(const char *path, int flags, ...) {
    int openat64(int, const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    return openat64(AT_FDCWD, path, flags, mode);
}
OPENS(openat64, at, int at, real(at, path, flags, mode))
int openat(int at, const char *path, int flags, ...) __attribute__((alias("openat64")));

ssize_t write(int fd, const void *data, size_t length) {
    REAL(write);
    char one[PATH_MAX];
    if (!armed || fd == record) return real(fd, data, length);
    of(fd, one);
    if (!within(one)) return real(fd, data, length);
    pthread_mutex_lock(&lock);
    int was_full = full, error = gate("write");
    if (error == ENOSPC && !was_full && full && length > 1) length /= 2, error = 0; /* the rest of the disk */
    long at = lseek(fd, 0, SEEK_CUR);
    ssize_t result = error ? -1 : real(fd, data, length);
    error = error ? error : errno;
    if (result >= 0) line("write", one, "", at, result), put(data, result);
    else line("failed", "write", one, error, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

/* The device is simulated from the record, so nothing is flushed. */
int fsync(int fd) {
    char one[PATH_MAX];
    of(fd, one);
    WATCHED("fsync", one, "", 0, fcntl(fd, F_GETFD) < 0 ? -1 : 0);
}

int ftruncate64(int fd, off64_t length) {
    REAL(ftruncate64);
    char one[PATH_MAX];
    of(fd, one);
    WATCHED("truncate", one, "", length, real(fd, length));
}
int ftruncate(int fd, off_t length) __attribute__((alias("ftruncate64")));

int rename(const char *from, const char *to) {
    REAL(rename);
    char one[PATH_MAX], two[PATH_MAX];
    absolute(AT_FDCWD, from, one), absolute(AT_FDCWD, to, two);
    WATCHED("rename", one, two, 0, real(from, to));
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    char one[PATH_MAX];
    absolute(AT_FDCWD, path, one);
    WATCHED("mkdir", one, "", 0, real(path, mode));
}

int rmdir(const char *path) {
    REAL(rmdir);
    char one[PATH_MAX];
    absolute(AT_FDCWD, path, one);
    WATCHED("unlink", one, "", 0, real(path));
}

int unlink(const char *path) {
    REAL(unlink);
    char one[PATH_MAX];
    absolute(AT_FDCWD, path, one);
    WATCHED("unlink", one, "", 0, real(path));
}

int unlinkat(int at, const char *path, int flags) {
    REAL(unlinkat);
    char one[PATH_MAX];
    absolute(at, path, one);
    WATCHED("unlink", one, "", 0, real(at, path, flags));
}
