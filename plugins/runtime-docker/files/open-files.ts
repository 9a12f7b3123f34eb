/** What processes hold open, or mapped, and no name leads to any more. */
interface NamelessFiles {
  readonly files: number
  readonly bytes: number
  /** There was no time for all. */
  readonly isCut: boolean
}

const blockBytes = 512
/** Of one container; the largest are told first. */
const mostTold = 20_000

/** Whose control group it is stands in a file that no container can write. */
export const processesCommand = (): readonly [string, ...string[]] => [
  'sh',
  '-c',
  "grep -EoHm 1 '[0-9a-f]{64}' /proc/[0-9]*/cgroup 2>/dev/null; true"
]

/** By the container's id, the processes that run in it. */
export function readProcesses(output: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  let latest: string | undefined
  for (const line of output.split('\n')) {
    const [, pid, container] = /^\/proc\/(\d+)\/cgroup:([0-9a-f]{64})$/.exec(line) ?? []
    // The outermost comes first, where a container runs containers.
    if (pid === undefined || container === undefined || pid === latest) continue
    latest = pid
    const pids = found.get(container)
    if (pids === undefined) found.set(container, [pid])
    else pids.push(pid)
  }
  return found
}

/**
 * The file systems that count, then how many files are open there, which those are, and what is mapped, the largest first. Each
 * thread may have files of its own, and most have those of their process, which come first: a process may hold a million, and
 * have thousands of threads. Nothing is opened: a name in /proc is asked what it stands for.
 */
const script = `root=$1; each=$2; shift 2
for pid; do
  roots="$roots /proc/$pid/root"; maps="$maps /proc/$pid/maps"; own="$own /proc/$pid/fd"; tasks="$tasks /proc/$pid/task/*/fd"
done
devices=$(stat -L -c %d "$root" $roots 2>/dev/null | sort -u)
counted=$(printf ' %s$|' $devices)
opened() {
  timeout -k 1 "$each" find -L "$@" -mindepth 1 -maxdepth 1 -type f -links 0 -printf '%b %i %D\n' 2>/dev/null
  [ $? -ne 124 ] || printf '\nlate\n'
}
files=$({ opened $own; opened $tasks; } | grep -E "^late$|\${counted%|}" | sort -S 64M -u)
printf 'd %s\n' $devices
printf 'n %s\n' "$(printf '%s\n' "$files" | grep -c '^[0-9]')"
case "$files" in *late*) echo late;; esac
printf '%s\n' "$files" | grep '^[0-9]' | sort -S 64M -rn | head -n ${mostTold} | sed 's/^/f /'
{ timeout -k 1 "$each" grep -h ' (deleted)$' $maps 2>/dev/null
  [ $? -ne 124 ] || printf '\nlate\n'; } | awk '
  function number(hex,   n, i) { for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1; return n }
  $1 == "late" { print "late"; next }
  $5 == "" || seen[$1 $4 $5]++ { next }
  { split($1, range, "-"); size[$4 " " $5] += number(range[2]) - number(range[1]) }
  END { for (file in size) printf "m %.0f %s\n", size[file], file }' | sort -S 64M -k 1,1 -k 2,2rn | head -n ${mostTold}`

/** `root`: a folder of the disk that counts. */
export const openFilesCommand = (
  root: string,
  pids: readonly string[],
  { eachMs }: { readonly eachMs: number }
): readonly [string, ...string[]] => ['sh', '-c', script, 'sh', root, (eachMs / 1000).toFixed(3), ...pids]

/** Files in memory have no name either, and are none of a disk: only those count that are on the file systems told first. */
export function readOpenFiles(output: string): NamelessFiles {
  const devices = new Set<string>()
  /** By inode: the disk that counts is one. */
  const sizes = new Map<string, number>()
  const mapped = new Map<string, number>()
  let files = 0
  let isCut = false
  for (const line of output.split('\n')) {
    const [kind, first = '', second = '', third = ''] = line.split(' ')
    if (kind === 'late') isCut = true
    else if (kind === 'd') devices.add(deviceOf(Number(first)))
    else if (kind === 'n') files = Number(first)
    else if (kind === 'f') sizes.set(second, Number(first) * blockBytes)
    else if (kind === 'm' && devices.has(plainDevice(second))) mapped.set(third, Number(first))
  }
  // Of a file that is mapped and no longer open nobody says how much of it there is: at most this.
  for (const [inode, bytes] of mapped) {
    if (sizes.has(inode)) continue
    sizes.set(inode, bytes)
    files++
  }
  return { files, bytes: [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0), isCut }
}

/** As `major:minor`, from the number that stat tells. */
function deviceOf(number: number): string {
  const [low, high] = [number % 2 ** 32, Math.floor(number / 2 ** 32)]
  const major = ((low >>> 8) & 0xfff) + (high & 0xfffff000)
  const minor = (low & 0xff) | ((low >>> 12) & 0xfff00)
  return `${major}:${minor}`
}

/** In /proc/…/maps both numbers are hexadecimal. */
const plainDevice = (text: string): string =>
  text
    .split(':')
    .map(part => Number.parseInt(part, 16))
    .join(':')
