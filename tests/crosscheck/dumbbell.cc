// A dumbbell in ns-3, the peer of our own: N NewReno bulk flows through one bottleneck.
//
//   sender i --access--> left ==bottleneck==> right --access--> receiver i
//
// Everything that shapes the answer is a parameter with an explicit value, so that both programs can be
// given the same. The result is one JSON object on stdout. What is measured, and how it lines up with
// our simulator, is told in README.md beside this file; run.py compiles and drives the program.
//
// Three choices make the two programs comparable:
//  * ns-3's point-to-point frame is the IP packet plus 2 bytes of PPP; ours is an Ethernet frame without
//    FCS, the IP packet plus 14. The bottleneck here runs at rate * 1502 / 1514, so that a full-size
//    segment takes the same time on both wires. (`--frame=1502` turns the scaling off.)
//  * ns-3's device keeps a queue of its own below the queue discipline. With `--deviceQueue=0` the
//    discipline is stopped while the transmitter is busy and asked for a packet when it falls idle, as
//    our link does. With `--deviceQueue=1` one packet may wait in the device, as ns-3 does when its
//    queue is set to one packet; the wait there is then counted in the queueing delay too.
//  * Queueing delay is the time from arrival at the bottleneck to the start of transmission, of
//    delivered packets only. (ns-3's own `SojournTime` trace also has the packets that CoDel drops
//    after it dequeued them.)
//
// SPDX-License-Identifier: Apache-2.0 OR MIT

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <string>
#include <vector>

using namespace ns3;

// TcpNewReno, but half of cwnd instead of half of the pipe is left after a loss. ns-3 hands the control
// what RFC 6675 calls pipe (without what was SACKed or is taken for lost); RFC 5681 halves FlightSize.
// For experiments (`--congestion=FlightNewReno`); see FINDINGS.md.
class FlightNewReno : public TcpNewReno
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::FlightNewReno")
                                .SetParent<TcpNewReno>()
                                .AddConstructor<FlightNewReno>();
        return tid;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t bytesInFlight) override
    {
        return std::max(2 * state->m_segmentSize, std::max(bytesInFlight, state->m_cWnd.Get()) / 2);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<FlightNewReno>(this);
    }
};

NS_OBJECT_ENSURE_REGISTERED(FlightNewReno);

namespace
{

struct Options
{
    // The dumbbell.
    uint32_t flows = 8;
    uint64_t rate = 10'000'000;          // bit/s of Ethernet frames, before scaling
    uint32_t frame = 1514;               // what a full-size segment weighs on the other program's wire
    uint64_t accessRate = 10'000'000'000;
    std::string rttMin = "40ms";
    std::string rttMax = "80ms";
    std::string bottleneckDelay = "10ms"; // one way
    std::string receiverDelay = "1ms";    // one way
    uint32_t deviceQueue = 0;
    // The run.
    double duration = 60.0;
    double warmup = 20.0;
    double startSpread = 1.0; // flows start uniformly in [0, startSpread)
    uint32_t seed = 1;
    // TCP.
    uint32_t segment = 1448;
    uint32_t initialWindow = 10;
    uint32_t buffer = 1 << 20;
    uint32_t delAckCount = 2;
    std::string delAckTimeout = "200ms";
    std::string minRto = "1s";
    bool sack = true;
    bool limitedTransmit = true;
    bool prr = true;
    std::string congestion = "TcpNewReno";
    // The queue.
    std::string queue = "pfifo";
    uint32_t limit = 100;
    double redMin = 10;
    double redMax = 30;
    double redProbability = 0.1;
    double redWeight = 1.0 / 512;
    bool redGentle = true;
    bool redWait = false;
    std::string target = "5ms";
    std::string interval = "100ms";
    uint32_t minBytes = 1501; // ns-3 tests `bytes < minBytes`, Linux `bytes <= mtu`
    uint32_t quantum = 1500;
    uint32_t queues = 1024;
    std::string pieTarget = "15ms";
    std::string pieUpdate = "15ms";
    double pieAlpha = 0.125;
    double pieBeta = 1.25;
    std::string pieBurst = "150ms";
    bool pieDerandomize = true;
    std::string blueThreshold = "1000s"; // ns-3 only; 400 ms by its default; out of the way here
    double blueIncrement = 1.0 / 256;
    double blueDecrement = 1.0 / 4096;
    // Output.
    std::string trace; // a file for one line a bottleneck event
};

struct Measure
{
    bool on = false;
    uint64_t txPacketsWholeRun = 0;
    uint64_t txPackets = 0;
    uint64_t txBytes = 0;
    std::deque<Time> handed; // arrival times of packets that left the discipline but not yet the device
    std::vector<float> delayMs;
    FILE* trace = nullptr;
};

Measure g_m;

void
OnDequeue(Ptr<const QueueDiscItem> item)
{
    g_m.handed.push_back(item->GetTimeStamp());
}

void
OnDropAfterDequeue(Ptr<const QueueDiscItem>, const char*)
{
    // CoDel, FQ-CoDel and COBALT dequeue a packet and then drop it.
    if (!g_m.handed.empty())
    {
        g_m.handed.pop_back();
    }
}

void
OnTxBegin(Ptr<const Packet> packet)
{
    Time arrived = g_m.handed.front();
    g_m.handed.pop_front();
    g_m.txPacketsWholeRun++;
    if (!g_m.on)
    {
        return;
    }
    g_m.txPackets++;
    g_m.txBytes += packet->GetSize();
    g_m.delayMs.push_back(static_cast<float>((Simulator::Now() - arrived).GetNanoSeconds() * 1e-6));
}

// `--deviceQueue=0`: the discipline gives a packet only to an idle transmitter.
void
StopOnTxBegin(Ptr<NetDeviceQueueInterface> queues, Ptr<const Packet>)
{
    queues->GetTxQueue(0)->Stop();
}

void
WakeOnTxEnd(Ptr<NetDeviceQueueInterface> queues, Ptr<const Packet>)
{
    // Not called from within the device's own completion: it would start the next packet too early.
    Simulator::ScheduleNow(&NetDeviceQueue::Wake, queues->GetTxQueue(0));
}

void
TraceEnqueue(Ptr<const QueueDiscItem> item)
{
    fprintf(g_m.trace, "%" PRId64 " + %u\n", Simulator::Now().GetNanoSeconds(), item->GetSize());
}

void
TraceDequeue(Ptr<const QueueDiscItem> item)
{
    fprintf(g_m.trace,
            "%" PRId64 " - %u %" PRId64 "\n",
            Simulator::Now().GetNanoSeconds(),
            item->GetSize(),
            (Simulator::Now() - item->GetTimeStamp()).GetNanoSeconds());
}

void
TraceDrop(Ptr<const QueueDiscItem> item, const char* reason)
{
    fprintf(g_m.trace,
            "%" PRId64 " d %u %s\n",
            Simulator::Now().GetNanoSeconds(),
            item->GetSize(),
            reason);
}

void
TraceCwnd(uint32_t flow, uint32_t, uint32_t now)
{
    fprintf(g_m.trace, "%" PRId64 " w %u %u\n", Simulator::Now().GetNanoSeconds(), flow, now);
}

void
TraceState(uint32_t flow, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
{
    fprintf(g_m.trace,
            "%" PRId64 " s %u %s\n",
            Simulator::Now().GetNanoSeconds(),
            flow,
            TcpSocketState::TcpCongStateName[now]);
}

double
CpuSeconds()
{
    rusage u{};
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

double
Percentile(std::vector<float>& sorted, double p)
{
    if (sorted.empty())
    {
        return std::nan("");
    }
    auto rank = static_cast<size_t>(std::ceil(p * sorted.size()));
    return sorted[std::min(sorted.size() - 1, rank ? rank - 1 : 0)];
}

TrafficControlHelper
Discipline(const Options& o, const DataRate& rate)
{
    QueueSize limit(QueueSizeUnit::PACKETS, o.limit);
    TrafficControlHelper tc;
    if (o.queue == "pfifo")
    {
        tc.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(limit));
    }
    else if (o.queue == "red")
    {
        tc.SetRootQueueDisc("ns3::RedQueueDisc",
                            "MaxSize", QueueSizeValue(limit),
                            "MinTh", DoubleValue(o.redMin),
                            "MaxTh", DoubleValue(o.redMax),
                            "LInterm", DoubleValue(1.0 / o.redProbability),
                            "QW", DoubleValue(o.redWeight),
                            "Gentle", BooleanValue(o.redGentle),
                            "Wait", BooleanValue(o.redWait),
                            "ARED", BooleanValue(false),
                            "AdaptMaxP", BooleanValue(false),
                            "FengAdaptive", BooleanValue(false),
                            "NLRED", BooleanValue(false),
                            "MeanPktSize", UintegerValue(1500),
                            "LinkBandwidth", DataRateValue(rate),
                            "LinkDelay", TimeValue(Time(o.bottleneckDelay)),
                            "UseHardDrop", BooleanValue(true),
                            "UseEcn", BooleanValue(false));
    }
    else if (o.queue == "codel")
    {
        tc.SetRootQueueDisc("ns3::CoDelQueueDisc",
                            "MaxSize", QueueSizeValue(limit),
                            "MinBytes", UintegerValue(o.minBytes),
                            "Target", TimeValue(Time(o.target)),
                            "Interval", TimeValue(Time(o.interval)),
                            "UseEcn", BooleanValue(false));
    }
    else if (o.queue == "fq_codel")
    {
        tc.SetRootQueueDisc("ns3::FqCoDelQueueDisc",
                            "MaxSize", QueueSizeValue(limit),
                            "Flows", UintegerValue(o.queues),
                            "DropBatchSize", UintegerValue(64),
                            "Perturbation", UintegerValue(o.seed),
                            "Target", StringValue(o.target),
                            "Interval", StringValue(o.interval),
                            "UseEcn", BooleanValue(false));
        // The queues inside have no attribute of their own on the outside.
        Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(o.minBytes));
    }
    else if (o.queue == "pie")
    {
        tc.SetRootQueueDisc("ns3::PieQueueDisc",
                            "MaxSize", QueueSizeValue(limit),
                            "MeanPktSize", UintegerValue(1500),
                            "QueueDelayReference", TimeValue(Time(o.pieTarget)),
                            "Tupdate", TimeValue(Time(o.pieUpdate)),
                            "A", DoubleValue(o.pieAlpha),
                            "B", DoubleValue(o.pieBeta),
                            "MaxBurstAllowance", TimeValue(Time(o.pieBurst)),
                            "UseDequeueRateEstimator", BooleanValue(false),
                            "UseCapDropAdjustment", BooleanValue(true),
                            "UseDerandomization", BooleanValue(o.pieDerandomize),
                            "UseEcn", BooleanValue(false));
    }
    else if (o.queue == "cobalt")
    {
        tc.SetRootQueueDisc("ns3::CobaltQueueDisc",
                            "MaxSize", QueueSizeValue(limit),
                            "Target", TimeValue(Time(o.target)),
                            "Interval", TimeValue(Time(o.interval)),
                            "Increment", DoubleValue(o.blueIncrement),
                            "Decrement", DoubleValue(o.blueDecrement),
                            "BlueThreshold", TimeValue(Time(o.blueThreshold)),
                            "UseEcn", BooleanValue(false));
    }
    else
    {
        std::cerr << "unknown queue '" << o.queue
                  << "': pfifo, red, codel, fq_codel, pie or cobalt\n";
        std::exit(2);
    }
    return tc;
}

struct Snapshot
{
    uint64_t delivered = 0;
    QueueDisc::Stats stats;
    std::vector<uint64_t> byFlow;
};

} // namespace

int
main(int argc, char* argv[])
{
    Options o;
    CommandLine cmd(__FILE__);
    cmd.AddValue("flows", "number of flows", o.flows);
    cmd.AddValue("rate", "bottleneck rate in bit/s of Ethernet frames without FCS", o.rate);
    cmd.AddValue("frame", "bytes a full-size segment weighs on the other wire", o.frame);
    cmd.AddValue("accessRate", "access rate in bit/s", o.accessRate);
    cmd.AddValue("rttMin", "base RTT of the first flow", o.rttMin);
    cmd.AddValue("rttMax", "base RTT of the last flow", o.rttMax);
    cmd.AddValue("bottleneckDelay", "one-way delay of the bottleneck", o.bottleneckDelay);
    cmd.AddValue("receiverDelay", "one-way delay of a receiver's access link", o.receiverDelay);
    cmd.AddValue("deviceQueue", "packets that may wait below the discipline: 0 or 1", o.deviceQueue);
    cmd.AddValue("duration", "simulated seconds", o.duration);
    cmd.AddValue("warmup", "seconds cut from the measurement", o.warmup);
    cmd.AddValue("startSpread", "flows start uniformly in this many seconds", o.startSpread);
    cmd.AddValue("seed", "run number of ns-3's generator", o.seed);
    cmd.AddValue("segment", "TCP payload bytes a segment", o.segment);
    cmd.AddValue("initialWindow", "segments", o.initialWindow);
    cmd.AddValue("buffer", "socket buffers, bytes", o.buffer);
    cmd.AddValue("delAckCount", "segments an ACK", o.delAckCount);
    cmd.AddValue("delAckTimeout", "delayed-ACK timer", o.delAckTimeout);
    cmd.AddValue("minRto", "minimum RTO", o.minRto);
    cmd.AddValue("sack", "SACK", o.sack);
    cmd.AddValue("limitedTransmit", "RFC 3042", o.limitedTransmit);
    cmd.AddValue("prr", "RFC 6937 instead of classic recovery", o.prr);
    cmd.AddValue("congestion", "TypeId without ns3::", o.congestion);
    cmd.AddValue("queue", "pfifo, red, codel, fq_codel, pie, cobalt", o.queue);
    cmd.AddValue("limit", "packets", o.limit);
    cmd.AddValue("redMin", "packets", o.redMin);
    cmd.AddValue("redMax", "packets", o.redMax);
    cmd.AddValue("redProbability", "max_p", o.redProbability);
    cmd.AddValue("redWeight", "w_q", o.redWeight);
    cmd.AddValue("redGentle", "gentle to 2 max_th", o.redGentle);
    cmd.AddValue("redWait", "space drops by 1/p to 2/p", o.redWait);
    cmd.AddValue("target", "CoDel, FQ-CoDel, COBALT", o.target);
    cmd.AddValue("interval", "CoDel, FQ-CoDel, COBALT", o.interval);
    cmd.AddValue("minBytes", "CoDel, FQ-CoDel", o.minBytes);
    cmd.AddValue("quantum", "FQ-CoDel, bytes", o.quantum);
    cmd.AddValue("queues", "FQ-CoDel, number of queues", o.queues);
    cmd.AddValue("pieTarget", "PIE", o.pieTarget);
    cmd.AddValue("pieUpdate", "PIE", o.pieUpdate);
    cmd.AddValue("pieAlpha", "PIE", o.pieAlpha);
    cmd.AddValue("pieBeta", "PIE", o.pieBeta);
    cmd.AddValue("pieBurst", "PIE", o.pieBurst);
    cmd.AddValue("pieDerandomize", "PIE", o.pieDerandomize);
    cmd.AddValue("blueThreshold", "COBALT, ns-3 only", o.blueThreshold);
    cmd.AddValue("blueIncrement", "COBALT", o.blueIncrement);
    cmd.AddValue("blueDecrement", "COBALT", o.blueDecrement);
    cmd.AddValue("trace", "file for bottleneck events and windows", o.trace);
    cmd.Parse(argc, argv);

    RngSeedManager::SetSeed(20260);
    RngSeedManager::SetRun(o.seed);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::" + o.congestion)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName(o.prr ? "ns3::TcpPrrRecovery"
                                                              : "ns3::TcpClassicRecovery")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(o.segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(o.initialWindow));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(o.buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(o.buffer));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(o.delAckCount));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Time(o.delAckTimeout)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(3)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Time(o.minRto)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(o.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(o.limitedTransmit));

    NodeContainer senders;
    NodeContainer receivers;
    NodeContainer routers;
    senders.Create(o.flows);
    receivers.Create(o.flows);
    routers.Create(2);
    InternetStackHelper stack;
    stack.Install(senders);
    stack.Install(receivers);
    stack.Install(routers);

    // IP 20 + TCP 20 + timestamps 12 + PPP 2.
    const uint32_t here = o.segment + 52 + 2;
    const DataRate bottleneckRate(
        static_cast<uint64_t>(std::llround(static_cast<double>(o.rate) * here / o.frame)));

    PointToPointHelper link;
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize("1p")));
    link.SetDeviceAttribute("DataRate", DataRateValue(bottleneckRate));
    link.SetChannelAttribute("Delay", TimeValue(Time(o.bottleneckDelay)));
    NetDeviceContainer middle = link.Install(routers);

    TrafficControlHelper tc = Discipline(o, bottleneckRate);
    QueueDiscContainer forward = tc.Install(middle.Get(0));
    TrafficControlHelper back;
    back.SetRootQueueDisc("ns3::FifoQueueDisc",
                          "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, 100000)));
    Ptr<QueueDisc> backDisc = back.Install(middle.Get(1)).Get(0);
    Ptr<QueueDisc> disc = forward.Get(0);
    if (auto fq = DynamicCast<FqCoDelQueueDisc>(disc))
    {
        fq->SetQuantum(o.quantum);
    }

    Ipv4AddressHelper address("10.0.0.0", "255.255.255.252");
    address.Assign(middle);

    PointToPointHelper access;
    access.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize("1000000p")));
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(o.accessRate)));
    TrafficControlHelper none;
    const double low = Time(o.rttMin).GetSeconds();
    const double high = Time(o.rttMax).GetSeconds();
    const double fixed = Time(o.bottleneckDelay).GetSeconds() + Time(o.receiverDelay).GetSeconds();
    std::vector<Ipv4Address> to;
    for (uint32_t i = 0; i < o.flows; i++)
    {
        double rtt = o.flows == 1 ? low : low + (high - low) * i / (o.flows - 1);
        access.SetChannelAttribute("Delay", TimeValue(NanoSeconds(std::llround((rtt / 2 - fixed) * 1e9))));
        address.NewNetwork();
        NetDeviceContainer left = access.Install(senders.Get(i), routers.Get(0));
        address.Assign(left);
        none.Uninstall(left);
        access.SetChannelAttribute("Delay", TimeValue(Time(o.receiverDelay)));
        address.NewNetwork();
        NetDeviceContainer right = access.Install(routers.Get(1), receivers.Get(i));
        to.push_back(address.Assign(right).GetAddress(1));
        none.Uninstall(right);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ApplicationContainer sinks;
    auto uniform = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < o.flows; i++)
    {
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sinks.Add(sink.Install(receivers.Get(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to[i], 5000));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.SetAttribute("SendSize", UintegerValue(o.segment));
        ApplicationContainer app = bulk.Install(senders.Get(i));
        app.Start(Seconds(uniform->GetValue(0.0, o.startSpread)));
    }
    sinks.Start(Seconds(0));

    disc->TraceConnectWithoutContext("Dequeue", MakeCallback(&OnDequeue));
    disc->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&OnDropAfterDequeue));
    auto device = DynamicCast<PointToPointNetDevice>(middle.Get(0));
    device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&OnTxBegin));
    if (o.deviceQueue == 0)
    {
        auto queues = device->GetObject<NetDeviceQueueInterface>();
        device->TraceConnectWithoutContext("PhyTxBegin", MakeBoundCallback(&StopOnTxBegin, queues));
        device->TraceConnectWithoutContext("PhyTxEnd", MakeBoundCallback(&WakeOnTxEnd, queues));
    }
    if (!o.trace.empty())
    {
        g_m.trace = fopen(o.trace.c_str(), "w");
        disc->TraceConnectWithoutContext("Enqueue", MakeCallback(&TraceEnqueue));
        disc->TraceConnectWithoutContext("Dequeue", MakeCallback(&TraceDequeue));
        disc->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&TraceDrop));
        disc->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&TraceDrop));
        Simulator::Schedule(Seconds(o.startSpread + 0.001), [&] {
            for (uint32_t i = 0; i < o.flows; i++)
            {
                auto app = DynamicCast<BulkSendApplication>(senders.Get(i)->GetApplication(0));
                auto socket = app->GetSocket();
                socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&TraceCwnd, i));
                socket->TraceConnectWithoutContext("CongState", MakeBoundCallback(&TraceState, i));
            }
        });
    }

    auto snapshot = [&] {
        Snapshot s;
        for (uint32_t i = 0; i < o.flows; i++)
        {
            s.byFlow.push_back(DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx());
            s.delivered += s.byFlow.back();
        }
        s.stats = disc->GetStats();
        return s;
    };
    Snapshot before;
    Simulator::Schedule(Seconds(o.warmup), [&] {
        before = snapshot();
        g_m.on = true;
    });

    g_m.delayMs.reserve(1 << 20);
    Simulator::Stop(Seconds(o.duration));
    const double cpu0 = CpuSeconds();
    const auto wall0 = std::chrono::steady_clock::now();
    Simulator::Run();
    const double cpu = CpuSeconds() - cpu0;
    const double wall =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - wall0).count();
    Snapshot after = snapshot();

    const double span = o.duration - o.warmup;
    const uint64_t arrivals =
        after.stats.nTotalReceivedPackets - before.stats.nTotalReceivedPackets;
    const uint64_t drops = after.stats.nTotalDroppedPackets - before.stats.nTotalDroppedPackets;
    double sum = 0;
    double squares = 0;
    for (float d : g_m.delayMs)
    {
        sum += d;
        squares += static_cast<double>(d) * d;
    }
    const double n = g_m.delayMs.empty() ? 1 : g_m.delayMs.size();
    const double mean = sum / n;
    std::sort(g_m.delayMs.begin(), g_m.delayMs.end());
    double squaresOfGoodput = 0;
    for (uint32_t i = 0; i < o.flows; i++)
    {
        const double x = after.byFlow[i] - before.byFlow[i];
        squaresOfGoodput += x * x;
    }
    const double delivered = after.delivered - before.delivered;

    printf("{\n");
    printf("  \"program\": \"ns-3\",\n");
    printf("  \"queue\": \"%s\", \"flows\": %u, \"rate_bps\": %" PRIu64 ", \"seed\": %u,\n",
           o.queue.c_str(), o.flows, o.rate, o.seed);
    printf("  \"link_bps\": %" PRIu64 ", \"device_queue\": %u,\n",
           bottleneckRate.GetBitRate(), o.deviceQueue);
    printf("  \"duration_s\": %.9g, \"warmup_s\": %.9g,\n", o.duration, o.warmup);
    printf("  \"goodput_bps\": %.9g,\n", delivered * 8 / span);
    printf("  \"jain\": %.6g,\n",
           squaresOfGoodput > 0 ? delivered * delivered / (o.flows * squaresOfGoodput) : 0);
    printf("  \"delay_mean_ms\": %.6g, \"delay_sd_ms\": %.6g,\n",
           mean, std::sqrt(std::max(0.0, squares / n - mean * mean)));
    printf("  \"delay_p50_ms\": %.6g, \"delay_p95_ms\": %.6g, \"delay_p99_ms\": %.6g,\n",
           Percentile(g_m.delayMs, 0.50), Percentile(g_m.delayMs, 0.95), Percentile(g_m.delayMs, 0.99));
    printf("  \"loss\": %.6g, \"arrivals\": %" PRIu64 ", \"drops\": %" PRIu64 ",\n",
           arrivals ? static_cast<double>(drops) / arrivals : 0.0, arrivals, drops);
    printf("  \"drops_by_reason\": {");
    bool first = true;
    for (const auto* reasons : {&after.stats.nDroppedPacketsBeforeEnqueue,
                                &after.stats.nDroppedPacketsAfterDequeue})
    {
        const auto& earlier = reasons == &after.stats.nDroppedPacketsBeforeEnqueue
                                  ? before.stats.nDroppedPacketsBeforeEnqueue
                                  : before.stats.nDroppedPacketsAfterDequeue;
        for (const auto& [reason, count] : *reasons)
        {
            auto it = earlier.find(reason);
            printf("%s\"%s\": %" PRIu64, first ? "" : ", ", reason.c_str(),
                   static_cast<uint64_t>(count - (it == earlier.end() ? 0 : it->second)));
            first = false;
        }
    }
    printf("},\n");
    printf("  \"packets\": %" PRIu64 ", \"utilisation\": %.6g,\n",
           g_m.txPackets, g_m.txBytes * 8.0 / (span * bottleneckRate.GetBitRate()));
    printf("  \"packets_whole_run\": %" PRIu64 ", \"back_whole_run\": %u,\n",
           g_m.txPacketsWholeRun, backDisc->GetStats().nTotalSentPackets);
    printf("  \"events\": %" PRIu64 ", \"cpu_s\": %.6g, \"wall_s\": %.6g\n",
           Simulator::GetEventCount(), cpu, wall);
    printf("}\n");
    if (g_m.trace)
    {
        fclose(g_m.trace);
    }
    Simulator::Destroy();
    return 0;
}
