/**
 * What an engine leaves that is killed while it starts a container: its processes live on and are the engine's no more. Started again,
 * it takes the container for one that does not run, will not start it ("task … already exists", "id already in use"), and leaves the
 * processes where they are when it is removed (20.10). Another container would write into the same volumes as they do.
 */
interface Orphan {
  readonly pid: number
  readonly containerId: string
}

/** What the look has found of all processes of the machine. */
interface Seen {
  /** Control groups, of processes that are in a container, of whichever engine. */
  readonly groups: ReadonlyMap<number, string>
  /** The containers that processes say they hold for an engine. Any process can say so. */
  readonly holders: ReadonlyMap<number, string>
}

/**
 * Says what `readProcesses` reads. What processes call themselves is foreign text: it is cut, has no line breaks, and goes through no
 * `echo`, some of which make line breaks of `\\n`.
 */
export const lookScript = `
cd /proc || exit 1
printf '%s\\0' [0-9]*/cgroup | xargs -0 grep -HEm1 '[0-9a-f]{64}' 2>/dev/null
printf '%s\\0' [0-9]*/cmdline | xargs -0 grep -la containerd-shim 2>/dev/null | while read -r file; do
  printf '%s:%s\\n' "$file" "$(head -c 4096 "$file" 2>/dev/null | tr '\\0\\n' '  ')"
done
exit 0`

const row = /^(\d+)\/(cgroup|cmdline):(.*)$/
const shimId = / -id ([0-9a-f]{64}) /

export function readProcesses(output: string): Seen {
  const groups = new Map<number, string>()
  const holders = new Map<number, string>()
  for (const line of output.split('\n')) {
    const [, pid = '', source = '', words = ''] = row.exec(line) ?? []
    if (source === 'cgroup') groups.set(Number(pid), words)
    const held = source === 'cmdline' ? shimId.exec(words)?.[1] : undefined
    if (held !== undefined) holders.set(Number(pid), held)
  }
  return { groups, holders }
}

interface KnownContainers {
  /** The control group of all containers of this installation, as paths have it; undefined where there is none. */
  readonly group: string | undefined
  /** Own ones that do not run, or would not start. */
  readonly resting: ReadonlySet<string>
  /** By id, of all that the engine has: whether it runs. Asked after the look: what has been started since is in no row of it. */
  readonly onEngine: ReadonlyMap<string, boolean>
}

/**
 * Processes of the resting containers, and of those of this installation that the engine has no more. One that exists and is not among
 * the resting may be about to be started.
 */
export function orphansAmong({ groups, holders }: Seen, known: KnownContainers): readonly Orphan[] {
  const isOrphaned = (containerId: string, isOurs: boolean): boolean =>
    known.resting.has(containerId)
      ? known.onEngine.get(containerId) !== true
      : isOurs && !known.onEngine.has(containerId)
  const orphans: Orphan[] = []
  const inContainers = new Set<number>()
  for (const [pid, path] of groups) {
    const { containerId, isOurs } = containerOf(path, known)
    if (containerId === undefined) continue
    inContainers.add(pid)
    if (isOrphaned(containerId, isOurs)) orphans.push({ pid, containerId })
  }
  const ended = new Set(orphans.map(({ containerId }) => containerId))
  // What is in a container holds none, whatever it says.
  for (const [pid, containerId] of holders)
    if (!inContainers.has(pid) && (ended.has(containerId) || isOrphaned(containerId, false)))
      orphans.push({ pid, containerId })
  return orphans
}

/**
 * The engine itself may be in a container of another one, whose id comes first. What a container makes in its own group, behind its id,
 * has whatever name it likes.
 */
function containerOf(
  path: string,
  { group, onEngine }: KnownContainers
): { readonly containerId: string | undefined; readonly isOurs: boolean } {
  const at = group === undefined ? -1 : path.indexOf(`/${group}/`)
  const ids = (at < 0 ? path : path.slice(at)).match(/[0-9a-f]{64}/g) ?? []
  return at < 0
    ? { containerId: ids.find(id => onEngine.has(id)), isOurs: false }
    : { containerId: ids[0], isOurs: true }
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
