import type { ContainerCaps } from 'busbar/api/containers'

/** Of all steps that run in a build engine: what they use up, its daemon and the programs of the platform still have. */
export const stepsGroup = '/steps'

/** What the daemon has beside its steps. */
export const daemonMemoryBytes = 128 * 2 ** 20
export const daemonProcesses = 512

/** Makes the group. Its parents may have no processes and must hand their controllers down, where the machine has version 2. */
export const stepsGroupScript = `
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -o remount,bind,rw /sys/fs/cgroup
  mkdir -p /sys/fs/cgroup/init /sys/fs/cgroup${stepsGroup}
  while read -r process; do echo "$process" > /sys/fs/cgroup/init/cgroup.procs || true; done < /sys/fs/cgroup/cgroup.procs
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    for group in "" ${stepsGroup}; do
      echo "+$controller" > "/sys/fs/cgroup$group/cgroup.subtree_control" || true
    done
  done
else
  for group in $(awk '$3 == "cgroup" { print $2 }' /proc/mounts); do mount -o remount,bind,rw "$group"; done
  mount -o remount,bind,rw /sys/fs/cgroup
  mkdir -p /sys/fs/cgroup/pids${stepsGroup} /sys/fs/cgroup/memory${stepsGroup}
fi`

/** With version 1 a limit on memory is refused below what is in use: then that of the container holds alone. */
const limitScript = `
cd /sys/fs/cgroup
if [ -e cgroup.controllers ]; then
  echo "$1" > .${stepsGroup}/pids.max
  echo "$2" > .${stepsGroup}/memory.max
else
  echo "$1" > pids${stepsGroup}/pids.max
  echo "$2" > memory${stepsGroup}/memory.limit_in_bytes || true
fi`

/** Limits the steps to what the caps of the container leave beside the daemon. */
export const limitSteps = ({ processes, memoryBytes }: ContainerCaps): readonly string[] => [
  'sh',
  '-ec',
  limitScript,
  'limit',
  String(processes - daemonProcesses),
  String(memoryBytes - daemonMemoryBytes)
]
