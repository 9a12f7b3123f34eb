/**
 * Exchanges what two volumes hold, in three moves of a folder. `done` says that the first volume has what it is to have, and stays
 * beside the folder of the other one for as long as that is there: without it, one that was cut off before its first move could
 * not be told from one that has ended. What it leaves at any step is finished, and not undone, by the same script.
 */
const script = `cd "$1/$2" && cd "$1/$3" && cd "$1" || exit 1
[ "$4" = resumed ] || rm -f "$3/busbar-done" || exit 1
if [ ! -e "$3/busbar-done" ]; then
  if [ -d "$2/_data" ] && [ -d "$3/_data" ]; then mv "$2/_data" "$2/busbar-former" || exit 1; fi
  if [ ! -d "$2/_data" ]; then mv "$3/_data" "$2/_data" || exit 1; fi
  : > "$3/busbar-done" || exit 1
fi
if [ -d "$2/busbar-former" ]; then mv "$2/busbar-former" "$3/_data" || exit 1; fi
sync`

interface Exchange {
  /** Where the folders of volumes are. */
  readonly volumes: string
  readonly name: string
  readonly other: string
  /** An earlier one may have been cut off, or have ended, in which case it does nothing. */
  readonly isResumed: boolean
}

export const exchangeCommand = ({
  volumes,
  name,
  other,
  isResumed
}: Exchange): readonly [string, ...string[]] => [
  'sh',
  '-c',
  script,
  'exchange',
  volumes,
  name,
  other,
  isResumed ? 'resumed' : 'new'
]
