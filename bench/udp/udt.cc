// UDT 4: udt recv|send ADDRESS buffer=BYTES udp=BYTES ...
#include "common.h"
#include <udt/udt.h>
#include <vector>

static void check(int result) {
    if (result == UDT::ERROR) Words::fail(UDT::getlasterror().getErrorMessage());
}

int main(int argc, char **argv) {
    Words words(argc, argv);
    UDT::startup();
    UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    int mss = 1480;
    check(UDT::setsockopt(socket, 0, UDT_MSS, &mss, sizeof mss));
    if (int buffer = words.number("buffer", 0)) {
        int packets = buffer / 1400 + 64;
        if (packets > 25600) check(UDT::setsockopt(socket, 0, UDT_FC, &packets, sizeof packets));
        check(UDT::setsockopt(socket, 0, UDT_RCVBUF, &buffer, sizeof buffer));
        check(UDT::setsockopt(socket, 0, UDT_SNDBUF, &buffer, sizeof buffer));
        check(UDT::setsockopt(socket, 0, UDP_RCVBUF, &buffer, sizeof buffer));
    }
    std::vector<char> data(1 << 16, 7);
    char more[300];
    UDT::TRACEINFO trace;
    if (words.role == "recv") {
        check(UDT::bind(socket, (sockaddr *)&words.address, sizeof words.address));
        check(UDT::listen(socket, 1));
        puts("ready");
        fflush(stdout);
        sockaddr_in from;
        int length = sizeof from;
        UDTSOCKET peer = UDT::accept(socket, (sockaddr *)&from, &length);
        Reader reader(words);
        for (;;) {
            reader.rest();
            int n = UDT::recv(peer, data.data(), data.size(), 0);
            if (n == UDT::ERROR) break;
            reader.note(n);
        }
        int buffer = 0, udp = 0, size = sizeof buffer;
        UDT::getsockopt(socket, 0, UDT_RCVBUF, &buffer, &size);
        UDT::getsockopt(socket, 0, UDP_RCVBUF, &udp, &size);
        snprintf(more, sizeof more, ", \"size\": %d, \"kernel\": %d", buffer, udp);
        report(reader.bytes, reader.last - reader.start, more);
    } else {
        check(UDT::connect(socket, (sockaddr *)&words.address, sizeof words.address));
        Writer writer(words);
        uint64_t sent = 0;
        bool open = true;
        while (open && writer.next(data.size()))
            for (size_t at = 0; at < data.size();) {
                int n = UDT::send(socket, data.data() + at, data.size() - at, 0);
                if (n == UDT::ERROR) {
                    open = false;
                    break;
                }
                at += n;
                sent += n;
            }
        UDT::perfmon(socket, &trace, false);
        snprintf(more, sizeof more, ", \"sent\": %ld, \"lost\": %d, \"repeated\": %d",
                 (long)trace.pktSentTotal, trace.pktSndLossTotal, trace.pktRetransTotal);
        double seconds = now() - writer.start;
        // The call returns after all data are acknowledged.
        UDT::close(socket);
        report(sent, seconds, more);
    }
    UDT::cleanup();
}
