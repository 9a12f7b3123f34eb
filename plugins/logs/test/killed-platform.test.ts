import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { ProgramLines } from '../../../lab/program-lines.js'
import { isKeptWhole, type LogsLab, openLab, steady } from './logs-lab.js'

const deploymentId = '11111111-1111-4111-8111-111111111111'

test('kill -9 of the platform while a container writes loses no line and keeps none twice', async t => {
  const lab = await openLab(t)
  if (lab === undefined) return
  const application = await lab.application()
  const container = await application.run(steady(6000), deploymentId)
  await until(async () => (await application.history('?limit=1')).length > 0, 'the first lines')
  await lab.k.stop()
  for (let round = 0; round < 3; round++) await killedPlatform(lab)
  await lab.restart()
  await isKeptWhole(t, lab, application, container, 6000)
})

/** A platform that keeps lines for a while and is killed. */
async function killedPlatform(lab: LogsLab): Promise<void> {
  const { database, directory } = lab.k.state
  const child: ChildProcess = spawn(
    process.execPath,
    [
      `--import=${new URL('../../../scripts/test-loader.mjs', import.meta.url).href}`,
      '--conditions=busbar-source',
      fileURLToPath(new URL('platform-child.ts', import.meta.url)),
      JSON.stringify({ url: database.url, directory })
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  const exited = once(child, 'exit')
  try {
    if (child.stdout === null) throw new Error('the platform says nothing')
    await new ProgramLines(child.stdout, 'the platform').next('where it listens')
    const kept = async () => {
      const [row] = await query(lab, 'select next_ordinal as next from logs.collector')
      return Number(row?.next)
    }
    const before = await kept()
    await until(async () => (await kept()) > before, 'lines that this one keeps')
  } finally {
    child.kill('SIGKILL')
    await exited
  }
}

/** While no platform of the test runs. */
async function query(lab: LogsLab, text: string): Promise<Array<Record<string, unknown>>> {
  const { default: pg } = await import('pg')
  const client = new pg.Client(lab.k.state.database.url)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
