import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { HeartbeatFile } from '../heartbeat-file.js'

async function signsIn(
  t: Test
): Promise<{ signs: HeartbeatFile; directory: string; beat(): Promise<void>; set(time: string): void }> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-alive-'))
  t.teardown(async () => {
    await rm(directory, { recursive: true })
  })
  let now = new Date('2026-01-31T12:00:00.000Z')
  let beat = async (): Promise<void> => {}
  const clock = {
    now: () => now,
    every(_ms: number, run: () => void | Promise<void>) {
      beat = async () => {
        await run()
      }
      return () => {}
    }
  }
  const log = {
    warn: (...words: unknown[]) => {
      t.fail(String(words))
    }
  } as never
  return {
    signs: new HeartbeatFile(directory, clock, log),
    directory,
    beat: async () => {
      await beat()
    },
    set: time => {
      now = new Date(time)
    }
  }
}

test('a platform that died has left when it was last alive', async t => {
  const { signs, beat, set } = await signsIn(t)
  t.equal(await signs.last(), undefined, 'none ran before')
  signs.start()
  // Two writes at once come in any order.
  await until(async () => (await signs.last()) !== undefined, 'the first one')
  set('2026-01-31T12:00:05.000Z')
  await beat()
  t.same(await signs.last(), new Date('2026-01-31T12:00:05.000Z'))
})

test('one that was stopped has left nothing', async t => {
  const { signs, beat } = await signsIn(t)
  const stop = signs.start()
  await beat()
  await stop()
  t.equal(await signs.last(), undefined)
})

test('a file that a full disk has left empty says nothing', async t => {
  const { signs, directory } = await signsIn(t)
  await writeFile(join(directory, 'heartbeat'), '')
  t.equal(await signs.last(), undefined)
})
