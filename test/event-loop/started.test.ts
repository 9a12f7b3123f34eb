import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { createDatabase } from '../cluster/database.js'

const root = join(import.meta.dirname, '../..')
const startLimitMs = 120_000

test('the platform as it is started tells of an event loop that stands still', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-started-'))
  const database = await createDatabase()
  const child = spawn(process.execPath, [join(root, 'scripts/start.mjs')], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      BUSBAR_DIR: directory,
      DATABASE_URL: database.url,
      DOCKER_HOST: `unix://${join(directory, 'no-engine')}`,
      PORT: '0',
      // A Caddy of the machine would outlive a platform that is killed, as it is to.
      BUSBAR_CADDY_PROGRAM: 'none',
      BUSBAR_PROXY_PORT: '0',
      LOG_FORMAT: 'json'
    },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
    await database.drop()
    await rm(directory, { recursive: true, force: true })
  })
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', line => lines.push(line))
  const said = async (words: string, limitMs: number, meanwhile = async (): Promise<void> => {}) => {
    for (
      const end = Date.now() + limitMs;
      !lines.some(line => line.includes(words)) && child.exitCode === null && Date.now() < end;
      await meanwhile()
    )
      await pause(100)
    return lines.some(line => line.includes(words))
  }
  t.ok(await said('Busbar', startLimitMs), 'it serves')
  // Nothing in it runs for a while. It looks once what a start loads and compiles is over.
  const halt = async (): Promise<void> => {
    child.kill('SIGSTOP')
    await pause(600)
    child.kill('SIGCONT')
    await pause(400)
  }
  t.ok(await said('the event loop stood still', 40_000, halt))
})
