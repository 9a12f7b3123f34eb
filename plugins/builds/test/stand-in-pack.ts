import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { folder } from './kit.js'

/**
 * A program that stands in for pack in build engines, where there is nothing but a shell and the docker command. It asks the engine
 * for a container, as pack does for each phase, and makes an image of the source, in which it writes down how it was called. What it
 * does is what a file `behaviour` of the source says: `hang` never ends, and minds no signal; `greedy` takes all memory.
 */
const script = `#!/bin/sh
set -e
[ "$1" != version ] || { echo VERSION; exit; }
name=$2; shift 2
printf '%s\\n' "$name" "$@" > argv.txt
env | sort > variables
while [ $# -gt 0 ]; do
  case $1 in
    --builder) builder=$2 ;;
    --run-image) run=$2 ;;
    --network) network=$2 ;;
    --path) path=$2 ;;
    --buildpack) case $2 in docker://*) docker image inspect "\${2#docker://}" >/dev/null ;; *) test -e "$2" ;; esac ;;
    --lifecycle-image) docker image inspect "$2" >/dev/null ;;
    --cache) caches=$2 ;;
  esac
  shift
done
build=\${caches#*name=}; build=\${build%%;*}
launch=\${caches##*name=}
echo "===> BUILDING by VERSION"
echo "a word on stderr, and $API_KEY" >&2
phase() { docker run --label author=pack --network "$network" -v "pack-app-$$:/workspace" -v "$build:/cache" -v "$launch:/launch" "$@"; }
case $(cat behaviour 2>/dev/null) in
  hang)
    trap '' TERM
    phase --detach "$builder" sleep 1000 >/dev/null
    sleep 1000 & wait; sleep 1000 ;;
  greedy)
    phase --rm "$builder" tail /dev/zero || echo "ERROR: failed to build: executing lifecycle: failed with status code: $?"
    docker volume rm "pack-app-$$" >/dev/null
    exit 1 ;;
  fail) echo 'ERROR: failed to detect: no buildpack fits'; exit 7 ;;
  none) exit 0 ;;
esac
phase --rm "$builder" sh -c 'echo x >> /cache/builds; wc -l < /cache/builds; dd if=/dev/zero of=/launch/x bs=1M count=2 2>/dev/null; grep pids: /proc/self/cgroup; ip addr show dev eth0 | grep inet' > phase.txt
docker volume rm "pack-app-$$" >/dev/null
printf 'FROM %s\\nWORKDIR /workspace\\nCOPY . .\\nENV MADE_BY=pack\\nENTRYPOINT []\\nCMD ["httpd", "-f", "-p", "8080"]\\n' "\${run:-$builder}" > "$HOME/Dockerfile"
rm variables
docker build --quiet --tag "$name" --file "$HOME/Dockerfile" "$path" >/dev/null
`

interface StandInPack {
  /** For the platform's PATH. */
  readonly path: string
  /** Another version takes its place. */
  replace(version: string): Promise<void>
}

export async function standInPack(t: Test): Promise<StandInPack> {
  const directory = await folder(t)
  const file = join(directory, 'pack')
  const replace = async (version: string): Promise<void> => {
    await writeFile(file, script.replaceAll('VERSION', version))
    await chmod(file, 0o755)
  }
  await replace('version-1')
  return { path: `${directory}:${process.env.PATH ?? ''}`, replace }
}
