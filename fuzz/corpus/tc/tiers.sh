#!/bin/sh
# A router's two directions: three tiers behind a shaper out, one behind a shaper in.
. ${LIB:-.}/defaults.sh
incoming=ifb4$IFACE

say() { [ "${VERBOSE:-0}" -ge 8 ] && logger "$*"; }
run() { say "$@"; command $TC "$@"; }

# burst NAME RATE: bytes of a millisecond, and no less than a frame
burst() {
    local bytes=$(($2 / 8))
    if [ "$bytes" -lt "${FRAME:-1514}" ]; then bytes=${FRAME:-1514}; fi
    printf '%s %d' "$1" "$bytes"
}

size_table() {
    case "$FRAMING" in
        dsl | atm) echo "stab overhead ${OVERHEAD:-0} linklayer atm" ;;
        none) return 0 ;;
        *) echo "stab overhead ${OVERHEAD:-0}" ;;
    esac
}

up() {
    run qdisc del dev $IFACE root 2> /dev/null
    run qdisc add dev $IFACE root handle 1: $(size_table) htb default 12
    run class add dev $IFACE parent 1: classid 1:1 htb rate ${UPLINK}kbit ceil ${UPLINK}kbit \
        $(burst burst $UPLINK) $(burst cburst $UPLINK)
    tier=1
    for share in 3 6 6; do
        run class add dev $IFACE parent 1:1 classid 1:1$tier htb \
            rate `expr $UPLINK / $share`kbit ceil ${UPLINK}kbit prio $tier
        run qdisc add dev $IFACE parent 1:1$tier handle 1${tier}0: $QDISC $EXTRA
        tier=$((tier + 1))
    done
    for pair in 0xb8=11 0xc0=11 0x20=13; do
        run filter add dev $IFACE parent 1: protocol ip prio $((order += 1)) \
            u32 match ip tos ${pair%=*} 0xfc classid 1:${pair#*=}
        run filter add dev $IFACE parent 1: protocol ipv6 prio $((order += 1)) \
            u32 match ip6 priority ${pair%=*} 0xfc classid 1:${pair#*=}
    done
    iptables -t mangle -A PREROUTING -i $IFACE -m dscp ! --dscp 0 -j DSCP --set-dscp-class be
}

down() {
    run qdisc del dev $IFACE ingress 2> /dev/null
    run qdisc add dev $IFACE handle ffff: ingress
    run qdisc add dev $incoming root handle 1: $(size_table) htb default 10
    run class add dev $incoming parent 1: classid 1:10 htb rate ${DOWNLINK}kbit
    run qdisc add dev $incoming parent 1:10 handle 110: $QDISC
    ip link set dev $incoming up
    run filter add dev $IFACE parent ffff: protocol all u32 match u32 0 0 \
        action mirred egress redirect dev $incoming
}

[ "$UPLINK" -eq 0 ] || up
test "$DOWNLINK" = 0 || down
