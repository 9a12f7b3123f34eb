/** What is in a folder, up to so many. */
export interface FolderCount {
  readonly inodes: number
  /** Of those, made or changed since. */
  readonly recent: number
}

/**
 * One letter for each file and directory, so that nothing is held of their names, and no name passes for another:
 * with the limit reached, the program that finds them ends.
 */
const script = `most=$1; since=$2; shift 2
for folder; do
  find "$folder" -xdev -mindepth 1 \\( -newerct "$since" -printf '\\n' -o -printf o \\) 2>/dev/null |
    head -c "$most" | wc -lc
done`

/** The program that counts what is in each of the folders; it takes GNU's find. */
export const countCommand = (
  folders: readonly string[],
  { most, since }: { readonly most: number; readonly since: Date }
): readonly [string, ...string[]] => [
  'sh',
  '-c',
  script,
  'sh',
  String(most),
  `@${(since.getTime() / 1000).toFixed(3)}`,
  ...folders
]

/** In the order of the folders. */
export const readCounts = (output: string): FolderCount[] =>
  output
    .trim()
    .split('\n')
    .map(line => {
      const [recent = 0, inodes = 0] = line.trim().split(/ +/).map(Number)
      return { inodes, recent }
    })
