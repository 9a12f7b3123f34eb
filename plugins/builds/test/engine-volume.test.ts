import { randomUUID } from 'node:crypto'
import type { ContainerRuntime } from 'busbar/api/containers'
import { Problem } from 'busbar/sdk'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startLab } from '../../runtime-docker/test/lab.js'
import { ProjectEngines } from '../engines/project-engines.js'
import { clock, log, ownEngineKinds } from './kit.js'

const enginesOf = (runtime: ContainerRuntime, removed: string[]): ProjectEngines =>
  new ProjectEngines({
    kinds: ownEngineKinds(),
    runtime,
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

test('with the build engine of a project goes its volume', async t => {
  if (!(await requireEngine(t))) return
  const { runtime, spec, projectId } = startLab(t)
  const volume = `busbar-builder-${projectId}`
  const owner = { projectId }
  await runtime.ensureVolume(volume, owner)
  const network = await runtime.ensureBuildNetwork(projectId)
  const name = `busbar.builder.buildkit.${projectId}`
  const volumes = [{ volume, path: '/var/lib/builder' }]
  await runtime.create({ ...spec(name, network, { volumes }), name })
  const removed: string[] = []
  await enginesOf(runtime, removed).remove(projectId)
  t.same(removed, [projectId])
  t.same(await runtime.list(owner), [])
  t.same(await runtime.volumes(owner), [])
})

test('a build engine whose volume cannot be emptied in time is not recorded as gone', async t => {
  const removed: string[] = []
  const runtime: Pick<ContainerRuntime, 'list' | 'removeVolume'> = {
    list: async () => [],
    removeVolume: async () => {
      throw new Problem(503, 'E_VOLUME_NOT_EMPTIED', 'its files could not be removed in 10 minutes')
    }
  }
  await t.rejects(enginesOf(runtime as ContainerRuntime, removed).remove(randomUUID()), {
    status: 503,
    code: 'E_BUILD_ENGINE',
    message: /not gone yet: its files could not be removed in 10 minutes/
  })
  t.same(removed, [])
})
