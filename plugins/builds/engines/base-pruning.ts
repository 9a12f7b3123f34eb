import type { EngineProgram } from '../api.js'
import { basesPath, workPath } from './engine-program.js'

const hexOf = (imageId: string): string => imageId.slice('sha256:'.length)

/** Where a base lies or, where the daemon has taken it in, what says so. */
export const baseDirectory = (kind: EngineProgram['kind'], imageId: string): string =>
  `${basesPath}/${kind}/${hexOf(imageId)}`

/** Says that a build uses a base from now on, and then whether it is there. */
export const useBase = (directory: string, workDirectory: string): readonly string[] => [
  'sh',
  '-c',
  'touch "$1/uses-${0##*/}"; touch -c "$0"; test -d "$0" && echo yes || echo no',
  directory,
  workDirectory
]

/**
 * Removes bases that no build uses now, those that were not used for longest first, until so many bytes are left of them. A build says
 * that it uses one before it looks whether that is there. `size` and `remove`: commands that are told of `$base`, the hex digits of its id.
 */
export const pruneBases = (
  kind: EngineProgram['kind'],
  keptBytes: number,
  { size, remove }: { readonly size: string; readonly remove: string }
): string => `(
  cd ${basesPath}/${kind} 2>/dev/null || exit 0
  is_used() { ls ${workPath}/*/"uses-$base" >/dev/null 2>&1; }
  clear() { ${remove}; rm -rf "$base.gone"; }
  for gone in *.gone; do
    base=\${gone%.gone}
    if [ -e "$gone" ] && [ ! -e "$base" ]; then clear; fi
  done
  total=0
  for base in $(ls -t); do
    size=$(${size})
    total=$((total + \${size:-0}))
    [ "$total" -gt ${Math.floor(keptBytes)} ] && ! is_used || continue
    mv -T "$base" "$base.gone"
    if is_used; then mv -T "$base.gone" "$base"; continue; fi
    clear
    total=$((total - \${size:-0}))
  done
)
`
