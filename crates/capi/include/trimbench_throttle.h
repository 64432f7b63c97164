/* May this program free space now? The throttle of trimbench, for C and whatever calls C.
 *
 * A file system discards what is freed, and many drives serve no other I/O meanwhile. Ask before
 * each piece that you free, and report it afterwards:
 *
 *     trimbench_throttle *t = trimbench_throttle_open("/srv/db", "slowdown=10%");
 *     if (!t) errx(1, "%s", trimbench_error());
 *     while (size > 0) {
 *         int64_t may = trimbench_throttle_wait(t, size);
 *         if (may < 0) break;
 *         size -= may;
 *         ftruncate(fd, size);
 *         trimbench_throttle_done(t, may);
 *     }
 *     trimbench_throttle_close(t);
 *
 * A handle may be used by several threads; their calls take turns. A process needs one handle for
 * each file system. Link with -ltrimbench_throttle. */
#ifndef TRIMBENCH_THROTTLE_H
#define TRIMBENCH_THROTTLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It grows when a function changes its meaning or goes. */
#define TRIMBENCH_ABI 1

/* The version that the library has. */
uint32_t trimbench_abi(void);

/* What went wrong in this thread's last call that failed: UTF-8, never NULL, valid until this
 * thread's next call. */
const char *trimbench_error(void);

typedef struct trimbench_throttle trimbench_throttle;

/* Opens a throttle for the file system of this directory. Goals, with commas between several:
 *
 *     slowdown=10%       the share of their time that readers may lose; 10% where goal is NULL
 *     max-latency=5ms    how much longer a read may wait
 *
 * NULL on failure. */
trimbench_throttle *trimbench_throttle_open(const char *path, const char *goal);

/* Waits until something may be freed. `bytes`: all that is still to be freed.
 * Returns how many of them may be freed now, at least 1; 0 for 0; -1 on failure. */
int64_t trimbench_throttle_wait(trimbench_throttle *throttle, uint64_t bytes);

/* The same without waiting: 0 where nothing may be freed now, or another thread waits. Ask again
 * after some milliseconds. */
int64_t trimbench_throttle_try(trimbench_throttle *throttle, uint64_t bytes);

/* Reports that so many bytes were freed. Brings that to the disk (as fsync of a small file), so
 * that the file system sends its discards. 0, or -1 on failure. */
int trimbench_throttle_done(trimbench_throttle *throttle, uint64_t bytes);

/* Changes the goal while it runs. 0, or -1 on failure; then the old one stays. */
int trimbench_throttle_set_goal(trimbench_throttle *throttle, const char *goal);

/* Bytes that were freed and aren't discarded yet, as of the last call. */
uint64_t trimbench_throttle_backlog(const trimbench_throttle *throttle);

/* Frees the handle. NULL is allowed. No other thread may use it any more. */
void trimbench_throttle_close(trimbench_throttle *throttle);

#ifdef __cplusplus
}
#endif

#endif
