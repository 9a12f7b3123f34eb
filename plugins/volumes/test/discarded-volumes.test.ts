import type { ContainerRuntime } from 'busbar/api/containers'
import type { Bus, Log } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { DiscardedVolumes } from '../discarded-volumes.js'

/** Discarded volumes, `<project>-<number>`, and an engine that never comes to the end of those that are stuck. */
function removing(left: string[], stuck: readonly string[]) {
  const asked: string[] = []
  const discarded = new DiscardedVolumes({
    store: {
      discarded: async () =>
        left.map(name => ({ name, application_id: `web of ${name}`, project_id: name.split('-')[0] ?? '' })),
      forget: async name => {
        left.splice(left.indexOf(name), 1)
      }
    },
    runtime: {
      removeVolume: async name => {
        asked.push(name)
        if (stuck.includes(name)) await new Promise(() => {})
      }
    } satisfies Pick<ContainerRuntime, 'removeVolume'>,
    deployments: { isRollingOut: async () => false },
    bus: { onSignal: () => () => {} } as unknown as Bus,
    log: { warn: () => {}, debug: () => {} } as unknown as Log
  })
  return { discarded, asked }
}

test('volumes of one project that take long keep nobody else’s', async t => {
  const left = ['a-1', 'a-2', 'b-1', 'c-1', 'b-2']
  const { discarded, asked } = removing(left, ['a-1'])
  const end = new AbortController()
  const ended = discarded.keepRemoving(end.signal)
  await until(() => left.length === 2, 'those of the others to go')
  t.same(left, ['a-1', 'a-2'])
  t.notOk(asked.includes('a-2'), 'of one project one goes at a time')
  end.abort()
  await ended
  t.same(left, ['a-1', 'a-2'], 'and a platform that stops does not wait for it')
})
