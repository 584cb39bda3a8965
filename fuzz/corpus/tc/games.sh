#!/bin/bash
# HFSC with a real-time class for games, by one function for both directions.
OUT=${OUT:-eth1} IN="ifb-${OUT}"

curves() {
    local dev="$1" kbit="$2" kind="$3"
    local games=$((kbit * 15 / 100 + 400))
    local span=$((5 * 1500 * 8 / kbit))
    ((span < 25)) && span=25
    tc qdisc del dev "$dev" root &> /dev/null
    if [[ $LINE == dsl* ]]; then
        tc qdisc add dev "$dev" root handle 1: stab overhead 44 linklayer atm hfsc default 13
    else
        tc qdisc add dev "$dev" root handle 1: hfsc default 13
    fi
    tc class add dev "$dev" parent 1: classid 1:1 hfsc ls m2 "${kbit}kbit" ul m2 "${kbit}kbit"
    tc class add dev "$dev" parent 1:1 classid 1:11 hfsc \
        rt m1 "$((games * 10 > kbit ? kbit : games * 10))kbit" d "${span}ms" m2 "${games}kbit"
    for ((n = 12; n <= 13; n++)); do
        tc class add dev "$dev" parent 1:1 classid "1:$n" hfsc \
            ls m1 "$((kbit * (n - 11) / 4))kbit" d "${span}ms" m2 "$((kbit * 30 / 100))kbit"
        tc qdisc add dev "$dev" parent "1:$n" fq_codel memory_limit $((kbit * 25)) target 5ms
    done
    case "$kind" in
        drr)
            tc qdisc add dev "$dev" parent 1:11 handle 2:0 drr
            for part in 1:8000 2:4000; do
                tc class add dev "$dev" parent 2:0 classid "2:${part%%:*}" drr quantum "${part##*:}"
            done
            tc filter add dev "$dev" parent 2: protocol ip prio 1 u32 match ip tos 0xc0 0xfc classid 2:1
            tc filter add dev "$dev" parent 2: protocol ip prio 2 u32 match u8 0 0 classid 2:2
            ;;
        pfifo) tc qdisc add dev "$dev" parent 1:11 handle 10: pfifo limit $((5 + kbit / 4000)) ;;
        *) tc qdisc add dev "$dev" parent 1:11 "$kind" ;;
    esac
    while read -r tos class; do
        tc filter add dev "$dev" parent 1: protocol ip prio 10 \
            u32 match ip dsfield "$tos" 0xfc classid "1:$class"
    done << END
0xb8 11
0xa0 11
0x20 13
END
}

curves "$OUT" "${OUT_RATE:-18000}" "$GAMES"
ip link add name "$IN" type ifb && ip link set "$IN" up
tc qdisc add dev "$OUT" handle ffff: ingress
tc filter add dev "$OUT" parent ffff: protocol all matchall \
    action ctinfo dscp 63 128 action mirred egress redirect dev "$IN"
curves "$IN" "${IN_RATE:-90000}" "$GAMES"
