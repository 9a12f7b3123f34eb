/** What is in a folder, up to so many names. */
export interface FolderCount {
  /** Each hard link of a file is one. */
  readonly names: number
  /** A file with several names here and elsewhere counts by share. */
  readonly inodes: number
  /** Of those, made or changed since. */
  readonly recent: number
  readonly bytes: number
  readonly recentBytes: number
  /** There was no time for all of it. */
  readonly isCut: boolean
  /** There was no time to look at it. */
  readonly isUnseen: boolean
}

const blockBytes = 512
/** What an inode takes where a file system has no fixed number of them. */
const inodeBytes = 512

/**
 * A line of numbers for each file and directory, so that nothing is held of their names, and no name passes for another.
 * Lines are counted by what they say, and with the limit reached the program that finds them ends. What was killed may
 * leave half a line: a whole one ends with a dot.
 */
const script = `most=$1; since=$2; each=$3; end=$(($(date +%s) + $4)); shift 4
for folder; do
  if [ "$(date +%s)" -ge "$end" ]; then echo unseen
  else
    { timeout -k 1 "$each" find "$folder" -xdev -mindepth 1 \\
        \\( -newerct "$since" -printf 'r %y %b %n.\\n' -o -printf 'o %y %b %n.\\n' \\) 2>/dev/null
      [ $? -ne 124 ] || printf '\\nlate\\n'
    } | head -n "$most" | awk '{ count[$0]++ } END { for (line in count) print count[line], line }'
  fi
  echo end
done`

/** The program that counts what is in each of the folders; it takes GNU's find. */
export const countCommand = (
  folders: readonly string[],
  {
    most,
    since,
    eachMs,
    allMs
  }: { readonly most: number; readonly since: Date; readonly eachMs: number; readonly allMs: number }
): readonly [string, ...string[]] => [
  'sh',
  '-c',
  script,
  'sh',
  String(most),
  `@${(since.getTime() / 1000).toFixed(3)}`,
  (eachMs / 1000).toFixed(3),
  String(Math.ceil(allMs / 1000)),
  ...folders
]

/** In the order of the folders. */
export function readCounts(output: string): FolderCount[] {
  const counts: FolderCount[] = []
  let count = nothing
  for (const line of output.split('\n')) {
    if (line === 'end') {
      counts.push(count)
      count = nothing
    } else if (line === 'unseen') count = { ...count, isUnseen: true }
    else if (line.endsWith('late')) count = { ...count, isCut: true }
    else count = withLine(count, line)
  }
  return counts
}

export const nothing: FolderCount = {
  names: 0,
  inodes: 0,
  recent: 0,
  bytes: 0,
  recentBytes: 0,
  isCut: false,
  isUnseen: false
}

function withLine(count: FolderCount, line: string): FolderCount {
  const [, times, age, type, blocks, links] = /^(\d+) ([ro]) (\S) (\d+) (\d+)\.$/.exec(line) ?? []
  if (times === undefined) return count
  const names = Number(times)
  // Those of a directory are its subdirectories.
  const inodes = type === 'd' ? names : names / Math.max(1, Number(links))
  const bytes = inodes * (Number(blocks) * blockBytes + inodeBytes)
  const isRecent = age === 'r'
  return {
    ...count,
    names: count.names + names,
    inodes: count.inodes + inodes,
    bytes: count.bytes + bytes,
    recent: count.recent + (isRecent ? inodes : 0),
    recentBytes: count.recentBytes + (isRecent ? bytes : 0)
  }
}
