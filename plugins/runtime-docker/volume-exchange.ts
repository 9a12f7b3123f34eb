/**
 * Exchanges what two volumes hold, in three moves of a folder. `fresh` says that it is not done yet: made before the first
 * move, and gone before the last one, it lets one that was cut off be finished, and not be undone, by the same script.
 */
const script = `cd "$1/$2" && cd "$1/$3" && cd "$1" || exit 1
[ "$4" = resumed ] || : > "$3/busbar-fresh" || exit 1
if [ -e "$3/busbar-fresh" ]; then
  if [ -d "$2/_data" ] && [ -d "$3/_data" ]; then mv "$2/_data" "$2/busbar-former" || exit 1; fi
  if [ ! -d "$2/_data" ]; then mv "$3/_data" "$2/_data" || exit 1; fi
  rm "$3/busbar-fresh" || exit 1
fi
if [ -d "$2/busbar-former" ]; then mv "$2/busbar-former" "$3/_data" || exit 1; fi
sync`

interface Exchange {
  /** Where the folders of volumes are. */
  readonly volumes: string
  readonly name: string
  readonly other: string
  /** An earlier one may have been cut off; without one it does nothing. */
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
