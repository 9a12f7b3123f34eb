import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import pg from 'pg'
import type { Test } from 'tap'
import { type Lab, removeAll } from './lab.js'

export const longMs = 420_000

/** Runs a platform on this state until what it says matches, and `then` is over, and kills it there; the path of the database. */
export async function killedAt(
  state: TestKernel['state'],
  asked: { readonly path: string; readonly post: string; readonly body?: object },
  moment: RegExp,
  then: () => Promise<void> = async () => {}
): Promise<string> {
  const child = spawn(
    process.execPath,
    [
      `--import=${new URL('../../../scripts/test-loader.mjs', import.meta.url).href}`,
      '--conditions=busbar-source',
      fileURLToPath(new URL('crash-child.ts', import.meta.url)),
      JSON.stringify({ url: state.database.url, directory: state.directory, ...asked })
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  let path = asked.path
  const end = setTimeout(() => child.kill('SIGKILL'), longMs)
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      if (!line.startsWith('{')) continue
      const said = JSON.parse(line) as { path?: string; begun?: number; detail?: string }
      if (said.path !== undefined) path = said.path
      if (said.detail === undefined || !moment.test(said.detail)) continue
      await then()
      return path
    }
    throw new Error(`it ended, or took too long, before it said ${moment}`)
  } finally {
    clearTimeout(end)
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

/** Rows of a platform's own tables, while it is killed or another process has it. */
export async function rowsOf<T extends pg.QueryResultRow>(
  { database }: TestKernel['state'],
  text: string,
  values: readonly unknown[]
): Promise<readonly T[]> {
  const platform = new pg.Client({ connectionString: database.url })
  await platform.connect()
  try {
    return (await platform.query<T>(text, [...values])).rows
  } finally {
    await platform.end()
  }
}

/** The container of a database, as its platform knows it. */
export async function containerIn(state: TestKernel['state'], id: string): Promise<Docker.Container> {
  const [row] = await rowsOf<{ container_id: string }>(
    state,
    'select container_id from databases.database where id = $1',
    [id]
  )
  return new Docker().getContainer(row?.container_id ?? '')
}

/** As an application of its project does it that finds the server again: as soon as that takes it, whatever the platform is at. */
export async function written(state: TestKernel['state'], id: string, password: string): Promise<void> {
  const container = await containerIn(state, id)
  const write = async (): Promise<boolean> => {
    const program = await container.exec({
      Cmd: ['psql', '-h', '127.0.0.1', '-U', 'postgres', '-d', 'shop', '-c', 'insert into kept values (-1)'],
      Env: [`PGPASSWORD=${password}`],
      AttachStdout: true
    })
    const output = await program.start({})
    output.resume()
    await once(output, 'end')
    return (await program.inspect()).ExitCode === 0
  }
  await until(async () => await write().catch(() => false), 'the server to take a row', longMs)
}

export async function projectOf(k: TestKernel): Promise<Lab> {
  const ann = await k.as.session('ann')
  const { body } = await ann.post('/api/projects', { name: 'x', slug: `t-${Date.now().toString(36)}` })
  return { k, ann, projectId: body.id, all: `/api/projects/${body.id}/databases` }
}

/** Goes on with what a killed platform has left. */
export async function goOn(t: Test, state: TestKernel['state']): Promise<TestKernel> {
  const k = await createTestKernel({ state })
  t.teardown(async () => {
    await removeAll(k)
    await k.close()
  })
  return k
}
