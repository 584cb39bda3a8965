// SRT in its mode for files: srt recv|send ADDRESS buffer=BYTES ...
#include "common.h"
#include <srt/srt.h>
#include <vector>

static void check(int result) {
    if (result == SRT_ERROR) Words::fail(srt_getlasterror_str());
}

int main(int argc, char **argv) {
    Words words(argc, argv);
    srt_startup();
    srt_setloglevel(0);
    SRTSOCKET socket = srt_create_socket();
    SRT_TRANSTYPE type = SRTT_FILE;
    check(srt_setsockflag(socket, SRTO_TRANSTYPE, &type, sizeof type));
    if (int buffer = words.number("buffer", 0)) {
        int packets = buffer / 1456 + 64;
        if (packets > 25600) check(srt_setsockflag(socket, SRTO_FC, &packets, sizeof packets));
        check(srt_setsockflag(socket, SRTO_RCVBUF, &buffer, sizeof buffer));
        check(srt_setsockflag(socket, SRTO_SNDBUF, &buffer, sizeof buffer));
        check(srt_setsockflag(socket, SRTO_UDP_RCVBUF, &buffer, sizeof buffer));
    }
    std::vector<char> data(1 << 16, 7);
    char more[300];
    SRT_TRACEBSTATS trace;
    if (words.role == "recv") {
        check(srt_bind(socket, (sockaddr *)&words.address, sizeof words.address));
        check(srt_listen(socket, 1));
        puts("ready");
        fflush(stdout);
        SRTSOCKET peer = srt_accept(socket, nullptr, nullptr);
        Reader reader(words);
        for (;;) {
            reader.rest();
            int n = srt_recv(peer, data.data(), data.size());
            if (n <= 0) break;
            reader.note(n);
        }
        srt_bstats(peer, &trace, 0);
        int buffer = 0, udp = 0, size = sizeof buffer;
        srt_getsockflag(socket, SRTO_RCVBUF, &buffer, &size);
        size = sizeof udp;
        srt_getsockflag(socket, SRTO_UDP_RCVBUF, &udp, &size);
        snprintf(more, sizeof more, ", \"discarded\": %d, \"size\": %d, \"kernel\": %d",
                 trace.pktRcvDropTotal, buffer, udp);
        report(reader.bytes, reader.last - reader.start, more);
    } else {
        check(srt_connect(socket, (sockaddr *)&words.address, sizeof words.address));
        Writer writer(words);
        uint64_t sent = 0;
        bool open = true;
        while (open && writer.next(data.size()))
            for (size_t at = 0; at < data.size();) {
                int n = srt_send(socket, data.data() + at, data.size() - at);
                if (n == SRT_ERROR) {
                    open = false;
                    break;
                }
                at += n;
                sent += n;
            }
        srt_bstats(socket, &trace, 0);
        snprintf(more, sizeof more, ", \"sent\": %ld, \"lost\": %d, \"repeated\": %d",
                 (long)trace.pktSentTotal, trace.pktSndLossTotal, trace.pktRetransTotal);
        double seconds = now() - writer.start;
        srt_close(socket);
        report(sent, seconds, more);
    }
    srt_cleanup();
}
