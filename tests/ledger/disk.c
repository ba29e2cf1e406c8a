/* Preloaded into a process: writes down what it does to the files of one folder, in the order in which it does it.
   DISK_FOLDER is the folder and DISK_LOG the file that is written. A line is: what, offset, length, name; then the bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char names[1024][256];

static void note(const char *what, const char *name, long offset, const void *bytes, long length) {
    static int log = -1;
    char line[512];
    if (log < 0) log = syscall(SYS_openat, AT_FDCWD, getenv("DISK_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    int size = snprintf(line, sizeof line, "%s %ld %ld %s\n", what, offset, length, name);
    syscall(SYS_write, log, line, size);
    if (bytes) syscall(SYS_write, log, bytes, length);
}

/* The name within the folder, "." for the folder itself, or NULL for what is elsewhere. */
static const char *within(const char *path) {
    const char *folder = getenv("DISK_FOLDER");
    size_t length = folder ? strlen(folder) : 0;
    if (!length || !path || strncmp(path, folder, length)) return NULL;
    return path[length] == '/' ? path + length + 1 : path[length] ? NULL : ".";
}

static int opened(const char *path, int flags, int mode) {
    const char *name = within(path);
    int is_new = name && (flags & O_CREAT) && access(path, F_OK);
    int file = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (file < 0 || file >= 1024) return file;
    snprintf(names[file], sizeof names[file], "%s", name ? name : "");
    if (is_new) note("create", name, 0, NULL, 0);
    return file;
}

#define OPEN(symbol) \
    int symbol(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        return opened(path, flags, mode); }
OPEN(open)
OPEN(open64)

int close(int file) {
    if (file >= 0 && file < 1024) names[file][0] = 0;
    return syscall(SYS_close, file);
}

static int known(int file) { return file >= 0 && file < 1024 && names[file][0]; }

ssize_t write(int file, const void *bytes, size_t length) {
    if (known(file)) note("append", names[file], 0, bytes, length);
    return syscall(SYS_write, file, bytes, length);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
    if (known(file)) note("write", names[file], offset, bytes, length);
    return syscall(SYS_pwrite64, file, bytes, length, offset);
}
ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) { return pwrite64(file, bytes, length, offset); }

int ftruncate64(int file, off64_t size) {
    if (known(file)) note("truncate", names[file], size, NULL, 0);
    return syscall(SYS_ftruncate, file, size);
}
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

/* A sync counts once it has returned. */
int fsync(int file) {
    int result = syscall(SYS_fsync, file);
    if (known(file)) note("sync", names[file], 0, NULL, 0);
    return result;
}
int fdatasync(int file) {
    int result = syscall(SYS_fdatasync, file);
    if (known(file)) note("sync", names[file], 0, NULL, 0);
    return result;
}

int unlink(const char *path) {
    if (within(path)) note("unlink", within(path), 0, NULL, 0);
    return syscall(SYS_unlink, path);
}
