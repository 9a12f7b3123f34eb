import { definePlugin } from 'busbar/sdk'
import { createTestKernel, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import type { Listener } from '../../core/database/listener.js'
import { ChoiceSignal } from '../../core/plugins/choice-signal.js'
import { log } from '../database/database-kit.js'

/** A line on which each process hears everybody, itself too. */
class Line {
  readonly #listeners = new Set<(data: string) => void>()

  end() {
    const reconnects = new Set<() => void>()
    const listener = {
      signal: async (_topic: string, data: string) => {
        for (const hear of this.#listeners) hear(data)
      },
      onSignal: (_topic: string, hear: (data: string) => void) => {
        this.#listeners.add(hear)
        return () => void this.#listeners.delete(hear)
      },
      onReconnect: (hear: () => void) => {
        reconnects.add(hear)
        return () => void reconnects.delete(hear)
      }
    } as unknown as Listener
    const refreshed: string[] = []
    const signal = new ChoiceSignal(listener, log)
    const stop = signal.follow({ refresh: async reloaded => void refreshed.push(reloaded) })
    return {
      announce: async (reloaded: string) => await signal.announce(reloaded),
      refreshed,
      stop,
      reconnect: () => {
        for (const hear of reconnects) hear()
      }
    }
  }
}

test('a change is followed by all processes but the one that made it', async t => {
  const line = new Line()
  const [one, two, three] = [line.end(), line.end(), line.end()]
  await one.announce('mail')
  await two.announce('')
  t.same(one.refreshed, [''])
  t.same(two.refreshed, ['mail'])
  t.same(three.refreshed, ['mail', ''])
})

test('a process whose connection was lost reads the choices again, and no other does', async t => {
  const line = new Line()
  const [one, two] = [line.end(), line.end()]
  one.reconnect()
  t.same([one.refreshed, two.refreshed], [[''], []])
})

test('one that stops follows nothing more', async t => {
  const line = new Line()
  const [one, two] = [line.end(), line.end()]
  one.stop()
  await two.announce('mail')
  one.reconnect()
  t.same(one.refreshed, [])
})

test('a change elsewhere has none tried again here that has failed for itself, but the one that is turned on again', async t => {
  let starts = 0
  const k = await createTestKernel({
    clock: testClock(),
    inline: [
      {
        manifest: { id: 'failing' },
        definition: definePlugin({
          id: 'failing',
          start: (): object => {
            starts++
            throw new Error('not today')
          }
        })
      }
    ]
  })
  t.teardown(async () => await k.close())
  t.equal(starts, 1)
  const choose = async (id: string) => {
    await k.query(
      `insert into kernel.plugin (id, desired, updated_at) values ('${id}', 'on', now()) on conflict (id) do update set updated_at = now()`
    )
    await k.kernel.reconciler.refresh('')
  }
  await choose('another')
  t.equal(starts, 1)
  await choose('failing')
  t.equal(starts, 2)
  await choose('failing')
  t.equal(starts, 3)
})
