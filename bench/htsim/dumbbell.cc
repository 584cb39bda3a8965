// The dumbbell of bench/peers in htsim: N NewReno bulk flows through one drop-tail bottleneck.
//
//   sender i --access--> left ==bottleneck==> right --access--> receiver i
//
// Each direction has three queues and three pipes, as many hops as in the other programs. The program is compiled
// against htsim's headers and linked with htsim's library, like htsim's own programs. bench/peers/run.py runs it.
// Options have the form `--name=value`. The result is one JSON object on standard output.
//
// Differences from the other programs: htsim has no SACK and no delayed acknowledgements, its shortest timeout is
// 250 ms, and an acknowledgement has 40 bytes. Sojourn is compared with it with an acknowledgement of each segment.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT

#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace
{

/// A queue that counts the packets that have left it.
class CountedQueue : public Queue
{
  public:
    using Queue::Queue;

    uint64_t sent = 0;

  protected:
    void completeService() override
    {
        sent++;
        Queue::completeService();
    }
};

/// Returns the value of the option `--name=value`. All options are required, so that no default of htsim differs
/// from the other programs.
double
Option(int argc, char** argv, const std::string& name)
{
    const std::string start = "--" + name + "=";
    for (int i = 1; i < argc; i++)
    {
        const std::string word = argv[i];
        if (word.compare(0, start.size(), start) == 0)
        {
            return std::atof(word.c_str() + start.size());
        }
    }
    std::fprintf(stderr, "the option %s is missing\n", start.c_str());
    std::exit(2);
}

double
CpuSeconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

} // namespace

int
main(int argc, char** argv)
{
    const auto option = [&](const char* name) { return Option(argc, argv, name); };
    const int flows = static_cast<int>(option("flows"));
    const auto rate = static_cast<linkspeed_bps>(option("rate"));
    const auto accessRate = static_cast<linkspeed_bps>(option("accessRate"));
    const double rttMin = option("rttMin");
    const double rttMax = option("rttMax");
    const double bottleneckDelay = option("bottleneckDelay");
    const double receiverDelay = option("receiverDelay");
    const double duration = option("duration");
    const double startSpread = option("startSpread");
    const int frame = static_cast<int>(option("frame"));
    const int segment = static_cast<int>(option("segment"));
    const auto limit = static_cast<mem_b>(option("limit"));
    const auto buffer = static_cast<uint32_t>(option("buffer"));

    srand(static_cast<unsigned>(option("seed")));
    std::cout.setstate(std::ios_base::failbit); // Suppresses htsim's own messages.
    Packet::set_packet_size(frame);
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(duration));
    TcpRtxTimerScanner timers(timeFromMs(10), events);

    // htsim counts the packet in transmission among those that wait.
    CountedQueue bottleneck(rate, (limit + 1) * frame, events, nullptr);
    const mem_b endless = mem_b(1) << 40;
    CountedQueue back(rate, endless, events, nullptr);
    Pipe there(timeFromSec(bottleneckDelay), events);
    Pipe home(timeFromSec(bottleneckDelay), events);

    std::vector<std::unique_ptr<Queue>> queues;
    std::vector<std::unique_ptr<Pipe>> pipes;
    const auto queue = [&] {
        queues.push_back(std::make_unique<Queue>(accessRate, endless, events, nullptr));
        return queues.back().get();
    };
    const auto pipe = [&](double seconds) {
        pipes.push_back(std::make_unique<Pipe>(timeFromSec(seconds), events));
        return pipes.back().get();
    };
    std::vector<std::unique_ptr<TcpSrc>> senders;
    std::vector<std::unique_ptr<TcpSink>> receivers;
    std::vector<std::unique_ptr<Route>> routes;
    for (int i = 0; i < flows; i++)
    {
        const double rtt = flows == 1 ? rttMin : rttMin + (rttMax - rttMin) * i / (flows - 1);
        const double senderDelay = rtt / 2 - bottleneckDelay - receiverDelay;
        senders.push_back(std::make_unique<TcpSrc>(nullptr, nullptr, events));
        receivers.push_back(std::make_unique<TcpSink>());
        TcpSrc& sender = *senders.back();
        TcpSink& receiver = *receivers.back();
        sender.set_ssthresh(0xffffffff);
        sender._maxcwnd = buffer;
        timers.registerTcp(sender);

        routes.push_back(std::make_unique<Route>());
        Route& out = *routes.back();
        routes.push_back(std::make_unique<Route>());
        Route& in = *routes.back();
        const auto hop = [](Route& route, Queue* waiting, Pipe* line) {
            route.push_back(waiting);
            route.push_back(line);
        };
        hop(out, queue(), pipe(senderDelay));
        hop(out, &bottleneck, &there);
        hop(out, queue(), pipe(receiverDelay));
        out.push_back(&receiver);
        hop(in, queue(), pipe(receiverDelay));
        hop(in, &back, &home);
        hop(in, queue(), pipe(senderDelay));
        in.push_back(&sender);
        sender.connect(out, in, receiver, timeFromSec(drand() * startSpread));
    }

    const double before = CpuSeconds();
    while (EventList::doNextEvent())
    {
    }
    const double cpu = CpuSeconds() - before;

    double delivered = 0;
    for (const auto& receiver : receivers)
    {
        delivered += static_cast<double>(receiver->_cumulative_ack) * segment / frame;
    }
    std::printf("{\"packets_whole_run\": %llu, \"back_whole_run\": %llu, \"drops\": %d, \"goodput_bps\": %.9g, "
                "\"cpu_s\": %.6g}\n",
                static_cast<unsigned long long>(bottleneck.sent), static_cast<unsigned long long>(back.sent),
                bottleneck.num_drops(), delivered * 8 / duration, cpu);
    std::fflush(stdout);
    std::_Exit(0); // No destructors: htsim's objects refer to each other.
}
