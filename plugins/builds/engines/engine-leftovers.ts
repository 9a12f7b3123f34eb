import { workPath } from './engine-program.js'

/**
 * Ends what builds are at for which nobody waits, and removes what they have left. Programs go on in a container when the platform
 * that has started them dies, or loses its engine. A process may have the number of one that has ended: it is known by its folder.
 */
const script = `cd ${workPath}
live=" $1 "
for directory in *; do
  [ -d "$directory" ] || continue
  case $live in *" $directory "*) continue ;; esac
  process=$(cat "$directory/process" 2>/dev/null || true)
  if [ -n "$process" ] && [ "$(readlink "/proc/$process/cwd")" = "$PWD/$directory" ]; then
    kill -KILL "-$process"
    for i in 1 2 3 4 5 6 7 8 9 10; do [ ! -e "/proc/$process/cwd" ] || sleep 0.1; done
  fi
  rm -rf "$directory" || rm -rf "$directory"
done`

/** `live`: the deployments for which a build is under way. */
export const removeLeftovers = (live: readonly string[]): readonly string[] => [
  'sh',
  '-c',
  script,
  'leftovers',
  live.join(' ')
]
