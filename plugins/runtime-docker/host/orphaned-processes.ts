/**
 * What an engine leaves that is killed while it starts a container: its processes live on and are the engine's no more. Started again,
 * it takes the container for one that does not run, will not start it ("task … already exists", "id already in use"), and leaves the
 * processes where they are when it is removed (20.10). Another container would write into the same volumes as they do.
 */
export interface ContainerProcess {
  readonly pid: number
  readonly containerId: string
  /** Its control group; of the program that holds a container for the engine, which is in none of the container's, undefined. */
  readonly group?: string
}

/** Says what `readProcesses` reads of all processes of the machine. */
export const lookScript = `
cd /proc || exit 1
printf '%s\\0' [0-9]*/cgroup | xargs -0 grep -HEm1 '[0-9a-f]{64}' 2>/dev/null
printf '%s\\0' [0-9]*/cmdline | xargs -0 grep -la containerd-shim 2>/dev/null | while read -r file; do
  echo "$file:$(tr '\\0\\n' '  ' < "$file" 2>/dev/null)"
done
exit 0`

const row = /^(\d+)\/(cgroup|cmdline):(.*)$/
// The outermost one: what a container makes in its own group has whatever name it likes.
const groupId = /[0-9a-f]{64}/
const shimId = / -id ([0-9a-f]{64}) /

/** Lines that say nothing of a container are passed over: processes choose their words. */
export function readProcesses(output: string): readonly ContainerProcess[] {
  return output.split('\n').flatMap((line): ContainerProcess[] => {
    const [, pid = '', source = '', words = ''] = row.exec(line) ?? []
    const containerId = source === 'cgroup' ? groupId.exec(words)?.[0] : shimId.exec(words)?.[1]
    if (containerId === undefined) return []
    return [{ pid: Number(pid), containerId, ...(source === 'cgroup' && { group: words }) }]
  })
}

/**
 * Ends the processes that the lines of its input name (`<pid> <id of its container>`) if they began before the last so many seconds, its
 * argument: what the engine has just started is none of them. Prints those that it has ended.
 */
export const endScript = `
read -r up rest < /proc/uptime
latest=$(((\${up%.*} - $1) * 100))
while read -r pid id; do
  stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
  set -- \${stat##*) }
  [ "\${20}" -le "$latest" ] 2>/dev/null || continue
  kill -9 "$pid" 2>/dev/null && echo "$pid $id"
done
exit 0`
