import type { ControlGroups } from './control-groups.js'
import { type GroupLimit, type MachineFacts, projectName } from './group-limits.js'

/** Where host tools have the control groups of the machine, and the units of its init system that hold until it restarts. */
export const groupsFolder = '/busbar-groups'
export const unitsFolder = '/run/systemd/system'

/** Says what the machine has, for `readFacts`. Its argument is the name of the group of all containers. */
export const factsScript = `
cd ${groupsFolder} || exit 1
memory=memory/ usage=memory.usage_in_bytes
if [ -e cgroup.controllers ]; then echo version 2; memory= usage=memory.current; else echo version 1; fi
for limit in pid_max threads-max; do echo processes "$(cat /proc/sys/kernel/$limit)"; done
while read -r what value rest; do [ "$what" != MemTotal: ] || echo memory "$value"; done < /proc/meminfo
for group in "$memory$1"/*/; do
  group=\${group%/}
  [ -e "$group/$usage" ] || continue
  value=$(cat "$group/$usage")
  # Without what the kernel only keeps of files.
  while read -r what bytes; do
    case $what in active_file|inactive_file|total_active_file|total_inactive_file) value=$((value - bytes));; esac
  done < "$group/memory.stat"
  echo used "$value" "\${group#"$memory"}"
done
exit 0`

/** Undefined where something is missing of what \`factsScript\` prints. */
export function readFacts(output: string): MachineFacts | undefined {
  const rows = output.split('\n').map(line => line.split(' '))
  const numbers = (wanted: string): number[] =>
    rows.filter(([what]) => what === wanted).map(([, value]) => Number(value))
  const [version] = numbers('version')
  const [kibibytes = Number.NaN] = numbers('memory')
  const processes = Math.min(...numbers('processes'))
  const used = new Map<string, number>()
  for (const [what, value, group] of rows)
    if (what === 'used' && group !== undefined) used.set(group, Number(value))
  if (version !== 1 && version !== 2) return undefined
  if (![kibibytes, processes, ...used.values()].every(Number.isFinite)) return undefined
  return { version, memoryBytes: kibibytes * 1024, processes, used }
}

/** Does what the lines of its input say, see `Step`. Prints what could not be done, and fails then. */
export const stepsScript = `
cd ${groupsFolder} || exit 1
failed=0
while read -r what path value; do
  case $what in
    make) mkdir -p "$path" 2>/dev/null;;
    set) { printf '%s' "$value" > "$path"; } 2>/dev/null;;
    change) [ ! -e "$path" ] || { printf '%s' "$value" > "$path"; } 2>/dev/null;;
    try) { printf '%s' "$value" > "$path"; } 2>/dev/null || true;;
    unit) { printf '%b' "$value" > "$path"; } 2>/dev/null;;
    remove) rmdir */"$path" "$path" 2>/dev/null || true;;
  esac || { echo "$what $path $value"; failed=1; }
done
exit $failed`

/** Takes away what is left of the group that its argument names. */
export const liftScript = `
cd ${groupsFolder} || exit 1
rmdir */"$1"/*/ */"$1" "$1"/*/ "$1" 2>/dev/null
name=\${1%.slice}
[ "$name" = "$1" ] || rm -f ${unitsFolder}/"$1" ${unitsFolder}/"$name"-*.slice
exit 0`

/**
 * `make` a directory; `set` a file, `change` it where it is there, `try` to set it; write a `unit`, whose line breaks are \\n; `remove` the
 * directories of a group.
 */
type Step = readonly [
  what: 'make' | 'set' | 'change' | 'try' | 'unit' | 'remove',
  path: string,
  value?: string
]

interface Files {
  readonly processes: string
  readonly memory: string
  readonly unlimited: string
}

const filesOf = (version: 1 | 2, group: string): Files =>
  version === 2
    ? { processes: `${group}/pids.max`, memory: `${group}/memory.max`, unlimited: 'max' }
    : {
        processes: `pids/${group}/pids.max`,
        memory: `memory/${group}/memory.limit_in_bytes`,
        unlimited: '-1'
      }

/**
 * The input of `stepsScript` that sets the limits. Groups of the engine's own are made before their first container; what an
 * init system keeps is told to it as units, which count for the groups that it will make, and changed where it has made it.
 */
export function limitSteps(
  groups: ControlGroups,
  limits: readonly GroupLimit[],
  { version, used }: MachineFacts
): string {
  const steps: Step[] = []
  const isMade = groups.driver === 'cgroupfs'
  const what = isMade ? 'set' : 'change'
  for (const { group, processes, memoryBytes } of limits) {
    const files = filesOf(version, group)
    if (!isMade)
      steps.push(['unit', `${unitsFolder}/${group.split('/').at(-1)}`, unitOf(processes, memoryBytes)])
    else if (version === 2) steps.push(['make', group], ...(group === groups.all ? controllers(group) : []))
    else steps.push(['make', `pids/${group}`], ['make', `memory/${group}`])
    // Without it, which kernels before 5.11 let choose, no limit counts for the groups below.
    if (version === 1) steps.push(['change', `memory/${group}/memory.use_hierarchy`, '1'])
    steps.push([what, files.processes, String(processes)])
    if (memoryBytes === undefined) continue
    const bytes = memoryBytes === 'unlimited' ? files.unlimited : String(memoryBytes)
    steps.push([what, files.memory, bytes])
    // What waits in sockets is counted where that has a limit of its own, which kernels may lack.
    if (version === 1) steps.push(['try', `memory/${group}/memory.kmem.tcp.limit_in_bytes`, bytes])
  }
  const wanted = new Set(limits.map(({ group }) => group))
  for (const group of used.keys())
    if (isMade && projectName.test(group.split('/').at(-1) ?? '') && !wanted.has(group))
      steps.push(['remove', group])
  return steps.map(step => `${step.join(' ')}\n`).join('')
}

/** Tried only: where it is refused, the file of the limit is missing. */
const controllers = (group: string): readonly Step[] =>
  ['.', group].map(parent => ['try', `${parent}/cgroup.subtree_control`, '+memory +pids'])

const unitOf = (processes: number, memoryBytes: GroupLimit['memoryBytes']): string =>
  `[Slice]\\nTasksMax=${processes}\\n${typeof memoryBytes === 'number' ? `MemoryMax=${memoryBytes}\\n` : ''}`
