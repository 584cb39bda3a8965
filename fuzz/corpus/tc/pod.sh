# A limit of 10 Mbit/s to a container, and of 5 Mbit/s from it.
tc qdisc add dev veth1 root handle 1: tbf rate 10000000bit burst 250000b latency 25ms
ip link add bwp1 type ifb
ip link set bwp1 up
tc qdisc add dev veth1 ingress
tc filter add dev veth1 parent ffff: protocol all u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev bwp1
tc qdisc add dev bwp1 root handle 1: tbf rate 5mbit burst 256000b latency 25ms
