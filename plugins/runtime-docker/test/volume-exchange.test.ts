import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { exchangeCommand } from '../volume-exchange.js'

const run = promisify(execFile)

/** Two volumes as an engine has them. */
async function volumes(t: Test) {
  const root = await mkdtemp(join(tmpdir(), 'busbar-exchange-'))
  t.teardown(async () => await rm(root, { recursive: true, force: true }))
  for (const [name, text] of [
    ['a', 'old'],
    ['b', 'new']
  ] as const) {
    await mkdir(join(root, name, '_data'), { recursive: true })
    await writeFile(join(root, name, '_data', 'file'), text)
  }
  return {
    root,
    exchange: async (isResumed: boolean): Promise<void> => {
      const [program, ...argv] = exchangeCommand({ volumes: root, name: 'a', other: 'b', isResumed })
      await run(program, argv)
    },
    holds: async (name: string): Promise<string> =>
      await readFile(join(root, name, '_data', 'file'), 'utf8').catch(() => 'nothing')
  }
}

const isTidy = (root: string): boolean =>
  ['a/busbar-former', 'b/busbar-former', 'a/busbar-done'].every(path => !existsSync(join(root, path)))

test('two volumes exchange what they hold, and to finish that again changes nothing', async t => {
  const { root, exchange, holds } = await volumes(t)
  await exchange(false)
  t.same([await holds('a'), await holds('b')], ['new', 'old'])
  await exchange(true)
  t.same([await holds('a'), await holds('b')], ['new', 'old'])
  t.ok(isTidy(root))
  await exchange(false)
  t.same([await holds('a'), await holds('b')], ['old', 'new'], 'another one is one')
})

test('an exchange that was cut off at any step is finished, and not undone', async t => {
  const cuts: ReadonlyArray<(root: string) => Promise<void>> = [
    async root => await rename(join(root, 'a/_data'), join(root, 'a/busbar-former')),
    async root => await rename(join(root, 'b/_data'), join(root, 'a/_data')),
    async root => await writeFile(join(root, 'b/busbar-done'), ''),
    async root => await rename(join(root, 'a/busbar-former'), join(root, 'b/_data'))
  ]
  for (let done = 0; done <= cuts.length; done++) {
    const { root, exchange, holds } = await volumes(t)
    for (const cut of cuts.slice(0, done)) await cut(root)
    await exchange(true)
    t.same([await holds('a'), await holds('b')], ['new', 'old'], `after ${done} steps`)
    t.ok(isTidy(root))
  }
})

test('an exchange with a volume that is not there changes nothing', async t => {
  const { root, exchange, holds } = await volumes(t)
  await rm(join(root, 'b'), { recursive: true })
  await t.rejects(exchange(false))
  t.equal(await holds('a'), 'old')
})
