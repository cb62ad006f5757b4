/* Loaded into a program (LD_PRELOAD), it sets the clock that this program sees forward by CLOCK_SHIFT seconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void)
{
    const char *seconds = getenv("CLOCK_SHIFT");
    return seconds ? atol(seconds) : 0;
}

time_t time(time_t *to)
{
    time_t (*real)(time_t *) = (time_t (*)(time_t *))dlsym(RTLD_NEXT, "time");
    time_t now = real(NULL) + shift();
    if (to)
        *to = now;
    return now;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
    int (*real)(struct timeval *, void *) = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(to, zone);
    to->tv_sec += shift();
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *to)
{
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, to);
    if (clock == CLOCK_REALTIME)
        to->tv_sec += shift();
    return result;
}
