// Shared parts of the programs: arguments name=value, a reader that pauses, a writer, and the report of a process.
#pragma once
#include <arpa/inet.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

struct Words {
    std::string role;
    sockaddr_in address{};
    std::map<std::string, std::string> words;

    Words(int argc, char **argv) {
        if (argc < 3) fail("recv|send ADDRESS:PORT name=value ...");
        role = argv[1];
        std::string text = argv[2];
        auto colon = text.rfind(':');
        if (colon == std::string::npos) fail("the address must have a form such as 127.0.0.1:9000");
        address.sin_family = AF_INET;
        address.sin_port = htons(atoi(text.c_str() + colon + 1));
        if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1)
            fail("the address must be an IPv4 address");
        for (int i = 3; i < argc; i++) {
            std::string word = argv[i];
            auto equals = word.find('=');
            if (equals == std::string::npos) fail("arguments must have the form name=value");
            words[word.substr(0, equals)] = word.substr(equals + 1);
        }
    }
    double number(const char *name, double other) const {
        auto found = words.find(name);
        return found == words.end() ? other : atof(found->second.c_str());
    }
    [[noreturn]] static void fail(const char *why) {
        fprintf(stderr, "%s\n", why);
        exit(2);
    }
};

inline double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

inline void rest_for(double seconds) {
    if (seconds <= 0) return;
    timespec t{(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&t, nullptr);
}

// A reader that pauses for the first `pause` milliseconds of each period of `every` milliseconds.
struct Reader {
    double start = 0, last = 0, pause, every;
    uint64_t bytes = 0;
    explicit Reader(const Words &w)
        : pause(w.number("pause", 0) / 1e3), every(w.number("every", 1) / 1e3) {}
    void rest() {
        if (start == 0) start = now();
        double at = now() - start;
        at -= every * (uint64_t)(at / every);
        rest_for(pause - at);
    }
    void note(uint64_t n) {
        if (start == 0) start = now();
        bytes += n;
        last = now();
    }
};

// A writer that waits until the next message is due. It sends for `seconds` seconds: all the time, or bursts of
// `burst` bytes with an interval of `gap` milliseconds.
struct Writer {
    double start = now(), seconds, burst, gap;
    uint64_t bytes = 0;
    explicit Writer(const Words &w)
        : seconds(w.number("seconds", 3)), burst(w.number("burst", 0)),
          gap(w.number("gap", 100) / 1e3) {}
    bool next(uint64_t n) {
        if (burst > 0) rest_for((uint64_t)(bytes / burst) * gap - (now() - start));
        bytes += n;
        return now() - start < seconds;
    }
};

// Returns the greatest memory of this process so far in bytes; getrusage would include the parent's memory.
inline unsigned long resident() {
    unsigned long kib = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lu", &kib) == 1) break;
    if (status) fclose(status);
    return kib * 1024;
}

inline void report(uint64_t bytes, double seconds, const char *more = "") {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    auto time = [](timeval t) { return t.tv_sec + t.tv_usec / 1e6; };
    printf("{\"bytes\": %lu, \"seconds\": %.6f, \"user\": %.6f, \"system\": %.6f, \"memory\": %lu%s}\n",
           (unsigned long)bytes, seconds, time(u.ru_utime), time(u.ru_stime),
           resident(), more);
    fflush(stdout);
}
