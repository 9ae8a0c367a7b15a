// What a program does to its own threads and children while they write. It prints what it sees
// that it should not see, and ends with status 9; else a last line.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t heard;

static void hear(int signal) { heard += signal > 0; }

static void must(int good, const char *what) {
    if (!good) {
        perror(what);
        _exit(9);
    }
}

static void *writes(void *times) {
    int fd = open("file", O_CREAT | O_APPEND | O_WRONLY, 0644);
    must(fd >= 0, "open");
    for (long i = 0; i < (long)times; i++) must(write(fd, "x", 1) == 1, "write");
    return NULL;
}

static void write_beside(long times) {
    pthread_t thread;
    for (int n = 0; n < 3; n++) must(!pthread_create(&thread, NULL, writes, (void *)times), "thread");
}

static void ended(pid_t child, int code, const char *what) {
    int status;
    must(waitpid(child, &status, 0) == child, what);
    must(WIFEXITED(status) && WEXITSTATUS(status) == code, what);
}

static void killed(pid_t child, int signal) {
    int status;
    must(!kill(child, signal), "kill");
    must(waitpid(child, &status, 0) == child, "waiting for the killed");
    must(WIFSIGNALED(status) && WTERMSIG(status) == signal, "what has killed");
}

static void stopped(pid_t child) {
    int status;
    must(!kill(child, SIGSTOP), "stop");
    must(waitpid(child, &status, WUNTRACED) == child, "waiting for the stop");
    must(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "what has stopped");
    must(!kill(child, SIGCONT), "continue");
}

int main(int argc, char **argv) {
    pid_t child;
    if (argc > 1) return 5;
    for (int i = 0; i < 40; i++) {
        if (!(child = fork())) {
            write_beside(1000000);
            pause();
        }
        usleep(500 + i * 211 % 3000);
        killed(child, SIGKILL);
    }
    for (int i = 0; i < 10; i++) {
        if (!(child = fork())) {
            write_beside(1000000);
            usleep(2000);
            execl(argv[0], argv[0], "again", NULL);
        }
        ended(child, 5, "exec beside threads");
        if (!(child = vfork())) execl(argv[0], argv[0], "again", NULL);
        ended(child, 5, "vfork");
        if (!(child = fork())) {
            write_beside(100);
            // The others go on without the first one, or all end.
            if (i % 2) pthread_exit(NULL);
            exit(0);
        }
        ended(child, 0, "exit beside threads");
        if (!(child = fork())) writes((void *)1000000);
        usleep(1000 + i * 200);
        stopped(child);
        usleep(500);
        killed(child, SIGTERM);
    }
    if (!(child = fork())) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        writes((void *)100);
        _exit(7);
    }
    ended(child, 7, "traced by its parent");
    struct sigaction action = {.sa_handler = hear, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 700}, {0, 700}};
    must(!sigaction(SIGALRM, &action, NULL) && !sigaction(SIGRTMIN + 3, &action, NULL), "handlers");
    if (!(child = fork())) {
        union sigval nothing = {0};
        for (int i = 0; i < 300; i++) {
            sigqueue(getppid(), SIGRTMIN + 3, nothing);
            usleep(300);
        }
        _exit(0);
    }
    setitimer(ITIMER_REAL, &every, NULL);
    writes((void *)700);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    ended(child, 0, "who has sent signals");
    must(heard >= 300, "real-time signals");
    puts("nothing seen");
    return 0;
}
