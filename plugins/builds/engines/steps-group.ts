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

const runtimeFolder = '/run/busbar-runtime'

/**
 * Version 1 counts what waits in sockets for a group only where that has a limit of its own, which no group inherits: what a step
 * keeps in its connections would be the machine's, which has one bound for all of them. The group of a step is made by the
 * program that starts it, so one of ours takes its name, and makes the group first: with no limit of its own, those above it hold.
 */
const runtime = `#!/bin/sh
before= bundle=
for word; do
  case $before in --bundle|-b) bundle=$word ;; esac
  before=$word
done
if [ -n "$bundle" ]; then
  group=$(sed -n 's/.*"cgroupsPath": *"\\([^"\\]*\\)".*/\\1/p' "$bundle/config.json")
  if [ -n "$group" ]; then
    mkdir -p "/sys/fs/cgroup/memory$group"
    echo -1 > "/sys/fs/cgroup/memory$group/memory.kmem.tcp.limit_in_bytes"
  fi
fi 2>/dev/null
`

/** Has the daemon start its steps so that all of their memory is counted. */
export const stepsRuntimeScript = `
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p ${runtimeFolder}
  for name in runc buildkit-runc; do
    program=$(command -v "$name") || continue
    { cat << 'RUNTIME'
${runtime}RUNTIME
      printf 'exec %s "$@"\\n' "$program"; } > "${runtimeFolder}/$name"
    chmod 755 "${runtimeFolder}/$name"
  done
  PATH="${runtimeFolder}:$PATH"
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
  [ ! -e memory${stepsGroup}/memory.kmem.tcp.limit_in_bytes ] ||
    echo "$2" > memory${stepsGroup}/memory.kmem.tcp.limit_in_bytes || true
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
