/* CoDel after RFC 8289: cc -O2 -o codel codel.c -lm; sojourn judge --discipline codel -- ./codel */
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIZE = 1 << 16 };
typedef struct { long long t; int id, size, ecn; } packet;
static packet ring[SIZE], none = {0, -1, 0, 0};
static unsigned head, tail;
static long long target, interval, limit, mtu, bytes, first_above, drop_next;
static int ecn, count, last, dropping;
static char dropped[1 << 20];

static packet take(long long now, int *late) {
    packet p = head == tail ? none : ring[head++ % SIZE];
    bytes -= p.size;
    if (p.id < 0 || now - p.t < target || bytes <= mtu) first_above = 0;
    else if (!first_above) first_above = now + interval;
    *late = first_above && now >= first_above;
    return p;
}
static long long law(long long t) { return t + (long long)(interval / sqrt(count)); }
static void drop(packet p) { sprintf(dropped + strlen(dropped), "%s%d", *dropped ? "," : "", p.id); }
static int marks(packet p) { return ecn && p.ecn; }

static void dequeue(long long now) {
    int late, marked = -1;
    packet p = take(now, &late);
    if (late && !dropping) {
        int delta = count - last;
        if (marks(p)) marked = p.id; else { drop(p); p = take(now, &late); }
        dropping = 1;
        last = count = delta > 1 && now - drop_next < 16 * interval ? delta : 1;
        drop_next = law(now);
    } else {
        dropping = late;
        while (dropping && now >= drop_next) {
            count++;
            if (marks(p)) { marked = p.id; drop_next = law(drop_next); break; }
            drop(p);
            p = take(now, &dropping);
            if (dropping) drop_next = law(drop_next);
        }
    }
    printf("{\"id\":");
    p.id < 0 ? printf("null") : printf("%d", p.id);
    printf(",\"dropped\":[%s],\"marked\":[", dropped);
    marked < 0 ? printf("]}\n") : printf("%d]}\n", marked);
}

static long long value(const char *line, const char *key) { /* of a key, such as "\"limit\":" */
    long long found = 0;
    if ((line = strstr(line, key))) sscanf(line + strlen(key), "%lld", &found);
    return found;
}

int main(void) {
    static char line[1 << 16];
    for (; fgets(line, sizeof line, stdin); fflush(stdout)) {
        long long t = value(line, "\"t\":");
        *dropped = 0;
        if (strstr(line, "\"judge\"")) {
            head = tail = 0;
            bytes = first_above = drop_next = count = last = dropping = 0;
            target = value(line, "\"target\":"), interval = value(line, "\"interval\":");
            limit = value(line, "\"limit\":"), mtu = value(line, "\"mtu\":");
            ecn = (int)value(line, "\"ecn\":");
            puts("{}");
        } else if (strstr(line, "enqueue")) {
            packet p = {t, (int)value(line, "\"id\":"), (int)value(line, "\"size\":"),
                        (int)value(line, "\"ecn\":")};
            if (tail - head >= limit) { printf("{\"dropped\":[%d]}\n", p.id), fflush(stdout); continue; }
            ring[tail++ % SIZE] = p, bytes += p.size;
            puts("{}");
        } else dequeue(t);
    }
    return 0;
}
