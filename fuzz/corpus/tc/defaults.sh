# Settings that the environment does not give.
: "${UPLINK:=2302}" "${DOWNLINK:=14698}" "${IFACE:=eth0}" "${QDISC:=fq_codel}" "${FRAMING:=none}"
TC=$(command -v tc)
EXTRA=${EXTRA:-}
