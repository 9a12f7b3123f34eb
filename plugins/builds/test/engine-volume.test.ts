import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startLab } from '../../runtime-docker/test/lab.js'
import { ProjectEngines } from '../engines/project-engines.js'
import { clock, log } from './kit.js'

const path = '/var/lib/builder'
const long = 'n'.repeat(100)

/** Files of several owners, many links, names that begin with a dot, and folders so deep down that no path leads there. */
const fill = `cd ${path} && mkdir links .hidden ..twice && echo one > links/file && chown 1234 links && chmod 500 links
i=0; while [ $i -lt 2000 ]; do ln links/file links/$i; i=$((i + 1)); done
mkdir -p deep/${long}; touch deep/${long}/file
i=0; while [ $i -lt 20 ]; do
  mkdir -p wrap/${Array(10).fill(long).join('/')}
  mv deep wrap/${Array(10).fill(long).join('/')}/ && mv wrap deep; i=$((i + 1))
done`

test('what a build engine leaves is removed in a container before the engine removes its volume', async t => {
  if (!(await requireEngine(t))) return
  const { runtime, docker, spec, projectId } = startLab(t)
  const volume = `busbar-builder-${projectId}`
  const owner = { projectId }
  await runtime.ensureVolume(volume, owner)
  const network = await runtime.ensureBuildNetwork(projectId)
  const run = async (script: string, name: string): Promise<readonly string[]> => {
    const changes = {
      entrypoint: ['sh', '-c', script],
      command: [],
      caps: 'standard' as const,
      restarts: false as const,
      volumes: [{ volume, path }]
    }
    const id = await runtime.create({ ...spec(name, network, changes), name })
    await runtime.start(id)
    await docker.getContainer(id).wait()
    return await runtime.tail(id, 5)
  }
  const engine = `busbar.builder.buildkit.${projectId}`
  t.match(await run(`${fill}; find ${path} 2>/dev/null | wc -l`, engine), [/^2\d{3}$/])
  const left: unknown[] = []
  const removed: string[] = []
  const removeVolume = async (name: string): Promise<void> => {
    left.push(await run(`ls -A ${path}`, `look-${projectId}`))
    for (const { id } of await runtime.list(owner)) await runtime.remove(id)
    await runtime.removeVolume(name)
  }
  const engines = new ProjectEngines({
    runtime: new Proxy(runtime, {
      get(target, key: keyof typeof runtime) {
        if (key === 'removeVolume') return removeVolume
        const value: unknown = target[key]
        return typeof value === 'function' ? value.bind(target) : value
      }
    }),
    clock,
    log,
    records: {
      used: async () => {},
      stopped: async () => {},
      removed: async id => void removed.push(id),
      live: async () => []
    },
    cacheBytes: 0
  })
  await engines.remove(projectId)
  t.same(left, [[]], 'nothing was left when the engine was told to')
  t.same(removed, [projectId])
  t.same(await runtime.list(owner), [])
  t.same(await runtime.volumes(owner), [])
})
