import type { ContainerRuntime } from 'busbar/api/containers'
import { type Clock, isProblem, type Log, withTimeLimit } from 'busbar/sdk'
import { problems } from '../problems.js'
import { engineVolumePath } from './engine-program.js'

interface EmptyingParts {
  readonly runtime: ContainerRuntime
  readonly clock: Clock
  readonly log: Log
}

/** What is left by then goes when it is tried again. */
const longestMs = 10 * 60_000
const lookMs = 100

/**
 * Removes all files below the folder. A path that is too long to be named ends `rm`: what is deep down is moved up then, as far down
 * as names reach, until nothing is left.
 */
const script = `cd "$0" || exit 1
rounds=0
until rm -rf ./* ./.[!.]* ./..?* 2>/dev/null; do
  rounds=$((rounds + 1)); [ $rounds -le 5000 ] || exit 1
  for depth in 1000 100 10; do
    find . -mindepth $depth -maxdepth $depth -type d -exec sh -c \\
      'for one; do mv "$one" "$(mktemp -d ./up-XXXXXX)/"; done' move {} + 2>/dev/null
  done
done`

/**
 * Empties the volume of a build engine whose containers are gone, in a container of its own that sees nothing else. The Docker
 * Engine removes a volume under a lock for all of them: with millions of files no other one could be made meanwhile.
 * 503 E_BUILD_ENGINE where it takes too long.
 */
export async function emptyVolume(
  { runtime, clock, log }: EmptyingParts,
  {
    projectId,
    volume,
    image
  }: { readonly projectId: string; readonly volume: string; readonly image: string }
): Promise<void> {
  let id: string | undefined
  const reason = () => problems.engineNotEmptied({ minutes: longestMs / 60_000 })
  try {
    id = await runtime.create({
      name: `busbar.builder.emptying.${projectId}`,
      image,
      owner: { projectId },
      network: await runtime.ensureBuildNetwork(projectId),
      env: {},
      entrypoint: ['sh', '-c', script, engineVolumePath],
      command: [],
      cpuLimit: 1,
      memoryLimit: 256 * 2 ** 20,
      processes: 64,
      caps: 'standard',
      readonlyRootfs: true,
      restarts: false,
      volumes: [{ volume, path: engineVolumePath }]
    })
    await runtime.start(id)
    const container = id
    const code = await withTimeLimit({ clock, ms: longestMs, reason }, async signal => {
      for (;;) {
        const state = await runtime.inspect(container)
        if (state === undefined || state.status === 'exited' || state.status === 'dead')
          return state?.exitCode
        await clock.sleep(lookMs, signal)
      }
    })
    if (code !== 0) log.warn({ projectId, code }, 'the volume of a build engine could not be emptied')
  } catch (error) {
    if (isProblem(error) && error.code === 'E_BUILD_ENGINE') throw error
    // Its image may be gone, and it may be gone itself.
    log.debug({ err: error, projectId }, 'the volume of a build engine goes as it is')
  } finally {
    if (id !== undefined) await runtime.remove(id)
  }
}
