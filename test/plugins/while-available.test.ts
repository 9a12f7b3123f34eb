import { test } from 'tap'
import { installation, within } from './third-party-kit.js'

/** Third-party code runs in this process. */
const shared = globalThis as { followed?: string[]; endNow?: () => void; failures?: number }

const giver = (version: string): string =>
  `provides: provide => { provide(service('giver.answers'), { name: async () => '${version}' }) }`

const taker = `
  needs: { giver: optional(service('giver.answers')), clock: kernel.clock },
  start: async ({ use, signal }) => {
    void use.giver.whileAvailable(signal, async (giver, following) => {
      const name = await giver.name()
      globalThis.followed.push('begins with ' + name)
      if (globalThis.failures-- > 0) throw new Error('it cannot be followed')
      await new Promise(resolve => {
        following.addEventListener('abort', resolve, { once: true })
        globalThis.endNow = resolve
      })
      globalThis.followed.push((following.aborted ? 'told that it ends: ' : 'ends by itself: ') + name)
    }).then(() => { globalThis.followed.push('over') })
    return {}
  }`

test('what follows an optional service begins when it is there, ends when it goes, and begins anew after a reload', async t => {
  const followed: string[] = []
  Object.assign(shared, { followed, failures: 0 })
  const { write, change } = await installation(t)
  await write('giver', giver('one'))
  await write('taker', taker, { manifest: { optional: { giver: '^1.0.0' } } })
  t.equal((await change('taker', 'enable')).status, 200)
  t.same(followed, [])

  await change('giver', 'enable')
  t.ok(await within(10_000, () => followed.length === 1), followed.join())
  await write('giver', giver('two'))
  await change('giver', 'reload')
  t.ok(await within(10_000, () => followed.length === 3), followed.join())
  await change('giver', 'disable')
  t.ok(await within(10_000, () => followed.length === 4), followed.join())
  await change('giver', 'enable')
  t.ok(await within(10_000, () => followed.length === 5), followed.join())
  shared.endNow?.()
  t.ok(await within(20_000, () => followed.length === 7), followed.join())
  await change('taker', 'disable')
  t.ok(await within(10_000, () => followed.length === 9), followed.join())
  t.same(followed, [
    'begins with one',
    'told that it ends: one',
    'begins with two',
    'told that it ends: two',
    'begins with two',
    'ends by itself: two',
    'begins with two',
    'told that it ends: two',
    'over'
  ])
})

test('what fails while it follows an optional service begins again, and hears nothing of one that is off', async t => {
  const followed: string[] = []
  Object.assign(shared, { followed, failures: 1 })
  const { write, change } = await installation(t)
  await write('giver', giver('one'))
  await write('taker', taker, { manifest: { optional: { giver: '^1.0.0' } } })
  await change('giver', 'enable')
  await change('taker', 'enable')
  t.ok(await within(20_000, () => followed.length === 2), followed.join())
  await change('taker', 'disable')
  await change('giver', 'disable')
  await change('giver', 'enable')
  t.same(followed, ['begins with one', 'begins with one', 'told that it ends: one', 'over'])
})
