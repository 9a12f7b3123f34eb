/**
 * A subnet for documentation, which no network of the machine or of the internet has. A step may ask for every address, and for each of them
 * the kernel has an entry in a table of the whole machine, of 1024 by default: 29 steps at once do not fill it.
 */
export const stepsSubnet = '192.0.2.0/27'
export const stepsGateway = '192.0.2.1/27'
/** What has an address in it, the bridge apart. */
export const mostSteps = 29
/** Of further networks, each of a build. */
export const buildNetworksSubnet = '192.0.2.128/25'

/**
 * A step can send frames with any sender (NET_RAW). Bridges in a build engine learn none of them, and what claims an address of
 * another network is not listened to, nor is IPv6: the kernel keeps both in memory that no limit counts, the
 * addresses of neighbours in one table for the whole machine. The same is done for the bridges that engines are behind
 * (`runtime-docker`).
 */
const script = `
mkdir -p /run/busbar-sys
mount -t sysfs sysfs /run/busbar-sys
mount -o remount,rw /run/busbar-sys
for bridge in /run/busbar-sys/class/net/*/bridge; do
  [ -e "$bridge" ] || continue
  echo 0 > "$bridge/ageing_time"
done
umount /run/busbar-sys
cd /proc/sys/net
for conf in ipv4/conf/*/rp_filter; do echo 1 > "$conf"; done
for conf in ipv6/conf/*/disable_ipv6; do [ ! -e "$conf" ] || echo 1 > "$conf"; done`

/** Once the daemon is ready, which makes its bridges when it starts. What is added later is as `default` says. */
export const limitStepsNetwork: readonly string[] = ['sh', '-ec', script]
