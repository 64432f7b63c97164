/* Makes a file of 64 MiB in a directory, and frees it piece by piece as the throttle allows. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trimbench_throttle.h"

int main(int argc, char **argv)
{
    char name[4096], *piece = malloc(1 << 20);
    uint64_t size = 64 << 20, pieces = 0, tries = 0;
    if (argc != 3 || trimbench_abi() != TRIMBENCH_ABI)
        errx(2, "usage: free DIRECTORY GOAL");

    trimbench_throttle *t = trimbench_throttle_open(argv[1], argv[2]);
    if (!t)
        errx(1, "%s", trimbench_error());

    snprintf(name, sizeof name, "%s/file", argv[1]);
    int file = open(name, O_CREAT | O_RDWR, 0600);
    memset(piece, 'x', 1 << 20);
    for (uint64_t at = 0; at < size; at += 1 << 20)
        if (pwrite(file, piece, 1 << 20, at) != 1 << 20)
            err(1, "%s", name);
    fsync(file);

    while (size > 0) {
        int64_t may = trimbench_throttle_try(t, size);
        if (may == 0) {
            tries++;
            may = trimbench_throttle_wait(t, size);
        }
        if (may < 1 || (uint64_t)may > size)
            errx(1, "%" PRId64 " of %" PRIu64 ": %s", may, size, trimbench_error());
        size -= may;
        if (ftruncate(file, size))
            err(1, "truncate");
        if (trimbench_throttle_done(t, may))
            errx(1, "%s", trimbench_error());
        pieces++;
    }
    if (trimbench_throttle_set_goal(t, "speed=3") != -1)
        errx(1, "a wrong goal was taken");
    printf("%" PRIu64 " pieces; %s\n", pieces, trimbench_error());
    trimbench_throttle_close(t);
    trimbench_throttle_close(NULL);
    unlink(name);
    return 0;
}
