#!/bin/sh
# One CAKE in each direction.
. ./defaults.sh
case $FRAMING in
    atm) framing="atm overhead ${OVERHEAD:-0}" ;;
    ethernet) framing="noatm overhead ${OVERHEAD:-0}${MPU:+ mpu $MPU}" ;;
esac
shape() {
    dev=$1 rate=$2
    shift 2
    "$TC" qdisc replace dev "$dev" root cake bandwidth "${rate}kbit" besteffort $framing "$@"
}
shape "$IFACE" "$UPLINK" nat &&
    shape "ifb4$IFACE" "$DOWNLINK" wash ingress
"$TC" qdisc add dev "$IFACE" handle ffff: ingress
"$TC" filter add dev "$IFACE" parent ffff: protocol all matchall \
    action mirred egress redirect dev "ifb4$IFACE"
