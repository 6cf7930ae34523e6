/* Preloaded, it stops each thread at random moments for a random while, wherever that thread is:
 * a scheduler that looks for races. ThreadSanitizer would see more, but needs a standard library that
 * was built with it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL (SIGRTMAX - 3)

static __thread uint64_t seed;

static uint32_t draw(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static void pause_here(int number) {
    (void)number;
    uint32_t kind = draw() % 16;
    struct timespec wait = {0, kind == 0 ? 2000000 : kind < 6 ? draw() % 100000 : 0};
    nanosleep(&wait, NULL);
}

static void watch_this_thread(void) {
    seed = (uint64_t)syscall(SYS_gettid) * 0x9E3779B97F4A7C15u + (uint64_t)time(NULL);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
    struct itimerspec often = {{0, 1000000 + draw() % 4000000}, {0, 1000000}};
    timer_settime(timer, 0, &often, NULL);
}

struct start {
    void *(*run)(void *);
    void *with;
};

static void *started(void *given) {
    struct start start = *(struct start *)given;
    free(given);
    watch_this_thread();
    return start.run(start.with);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) real = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = malloc(sizeof *start);
    if (!start) return real(thread, how, run, with);
    *start = (struct start){run, with};
    int error = real(thread, how, started, start);
    if (error) free(start);
    return error;
}

__attribute__((constructor)) static void begin(void) {
    struct sigaction action = {.sa_handler = pause_here, .sa_flags = SA_RESTART};
    sigaction(SIGNAL, &action, NULL);
    watch_this_thread();
}
