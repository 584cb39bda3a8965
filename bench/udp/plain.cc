// Plain datagrams without a protocol, as the limit for all others: GSO to send, recvmmsg and GRO to receive.
// Datagrams that do not fit into the receive buffer are lost.
#include "common.h"
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <vector>

static const int PAYLOAD = 1452, SEGMENTS = 45, BATCH = 8;

int main(int argc, char **argv) {
    Words words(argc, argv);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int buffer = words.number("kernel", 4 << 20), on = 1;
    std::vector<char> memory(BATCH * 65536, 7);
    if (words.role == "recv") {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
        setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on);
        if (bind(fd, (sockaddr *)&words.address, sizeof words.address)) Words::fail("cannot bind");
        puts("ready");
        fflush(stdout);
        Reader reader(words);
        mmsghdr messages[BATCH];
        iovec parts[BATCH];
        alignas(8) char control[BATCH][64];
        for (bool over = false; !over;) {
            if (reader.pause > 0 && reader.bytes > 0) reader.rest();
            memset(messages, 0, sizeof messages);
            for (int i = 0; i < BATCH; i++) {
                parts[i] = {&memory[i * 65536], 65536};
                messages[i].msg_hdr.msg_iov = &parts[i];
                messages[i].msg_hdr.msg_iovlen = 1;
                messages[i].msg_hdr.msg_control = control[i];
                messages[i].msg_hdr.msg_controllen = sizeof control[i];
            }
            int n = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, nullptr);
            for (int i = 0; i < n; i++) {
                over |= messages[i].msg_len == 3;
                if (!over) reader.note(messages[i].msg_len);
            }
        }
        report(reader.bytes, reader.last - reader.start);
        return 0;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    if (connect(fd, (sockaddr *)&words.address, sizeof words.address)) Words::fail("cannot connect");
    int segment = PAYLOAD;
    if (setsockopt(fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment))
        Words::fail("the kernel must support GSO for UDP");
    Writer writer(words);
    uint64_t sent = 0;
    while (writer.next(PAYLOAD * SEGMENTS))
        if (send(fd, memory.data(), PAYLOAD * SEGMENTS, 0) > 0) sent += PAYLOAD * SEGMENTS;
    double seconds = now() - writer.start;
    report(sent, seconds);
    for (int i = 0; i < 50; i++) {
        rest_for(0.02);
        if (send(fd, "end", 3, 0) < 0) break;
    }
}
