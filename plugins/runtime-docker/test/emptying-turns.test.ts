import { test } from 'tap'
import type { EngineClient } from '../engine-client.js'
import { VolumeEmptier } from '../removal/volume-emptier.js'
import { log } from './lab.js'

test('a volume whose removal somebody waits for does not wait for those that projects have left', async t => {
  const begun: string[] = []
  const docker = {
    listContainers: async ({ filters }: { filters: { volume: string[] } }) => {
      begun.push(...filters.volume)
      return await new Promise(() => {})
    }
  }
  const engine = {
    call: async (_what: string, ask: (engine: typeof docker) => Promise<unknown>) => await ask(docker)
  } as unknown as EngineClient
  const emptier = new VolumeEmptier({ engine, instanceId: 'one', log })
  for (let at = 0; at < 20; at++) void emptier.empty([`left-${at}`], `project-${at}`, { isLeft: true })
  void emptier.empty(['wanted'], 'project-0')
  void emptier.empty(['wanted-too'], 'project-20')
  await new Promise(setImmediate)
  t.same(begun, ['left-0', 'left-1', 'wanted', 'wanted-too'])
})
