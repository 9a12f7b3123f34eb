import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { ProgramLines } from '../../../lab/program-lines.js'
import { type FilesLab, lines, openFilesLab, paths } from './files-lab.js'
import { stored, storedPaths } from './requests-lab.js'

takeAwayFromEngine()

const each = 20_000
const rounds = 2

test('kill -9 of the platform while it reads a log loses no request and keeps none twice, over rotations', async t => {
  const lab = await openFilesLab(t)
  await lab.stop()
  const client = new pg.Client(lab.k.state.database.url)
  await client.connect()
  t.teardown(async () => await client.end())
  const count = async (): Promise<number> =>
    Number((await client.query('select count(*) as n from requests.request')).rows[0].n)
  const killedAt: number[] = []
  for (let round = 0; round < rounds; round++) {
    await lab.append(lines(round * each, (round + 1) * each))
    await killedPlatform(lab, count)
    killedAt.push(await count())
    await rename(lab.path, join(lab.folder, `access-2026-01-31T12-0${round}.log`))
  }
  t.ok(
    killedAt.some(rows => rows % each !== 0),
    `killed within a file: ${killedAt.join(', ')}`
  )
  await lab.append(lines(rounds * each, rounds * each + 1))
  await lab.start()
  await stored(lab.k, rounds * each + 1)
  t.same(await storedPaths(lab.k), paths(0, rounds * each + 1))
})

/** A platform that stores something and is killed. */
async function killedPlatform({ k, path }: FilesLab, count: () => Promise<number>): Promise<void> {
  const { database, directory } = k.state
  const child = spawn(
    process.execPath,
    [
      `--import=${new URL('../../../scripts/test-loader.mjs', import.meta.url).href}`,
      '--conditions=busbar-source',
      fileURLToPath(new URL('platform-child.ts', import.meta.url)),
      JSON.stringify({ url: database.url, directory, path })
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  const exited = once(child, 'exit')
  try {
    const before = await count()
    if (child.stdout === null) throw new Error('the platform says nothing')
    await new ProgramLines(child.stdout, 'the platform').next('where it listens')
    await until(async () => (await count()) > before, 'requests that this one stores')
  } finally {
    child.kill('SIGKILL')
    await exited
  }
}
