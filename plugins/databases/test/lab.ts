import { randomUUID } from 'node:crypto'
import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, type TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import type { Test } from 'tap'

export interface Lab {
  readonly k: TestKernel
  readonly ann: TestClient
  readonly projectId: string
  readonly all: string
}

export interface Made {
  readonly id: string
  readonly path: string
  readonly slug: string
}

/** The first start of a server writes its system tables. */
const runningMs = 300_000

type KernelOptions = NonNullable<Parameters<typeof createTestKernel>[0]>

/** A platform with a project; what it has made on the engine goes with it. `onClosed` runs when the platform has ended, however it did. */
export async function startLab(
  t: Test,
  options: KernelOptions = {},
  onClosed: () => Promise<void> = async () => {}
): Promise<Lab> {
  const k = await createTestKernel(options)
  t.teardown(async () => {
    try {
      // Where a test has failed, what is under way makes it again. What is left goes with the platform.
      await removeAll(k).catch(() => {})
      await k.close()
    } finally {
      await onClosed()
    }
  })
  const ann = await k.as.session('ann')
  const { body } = await ann.post('/api/projects', { name: 'x', slug: `t-${randomUUID().slice(0, 8)}` })
  return { k, ann, projectId: body.id, all: `/api/projects/${body.id}/databases` }
}

export async function removeAll(k: TestKernel): Promise<void> {
  if (!k.isProvided(containerRuntime)) return
  const runtime = k.service(containerRuntime)
  for (const { id, owner } of await runtime.list({}))
    if (owner.databaseId !== undefined) await runtime.remove(id, { filesMs: 5000 })
  for (const { id } of await k.query<{ id: string }>('select id from databases.database'))
    for (const { name } of await runtime.volumes({ databaseId: id })) await runtime.removeVolume(name)
}

/** Asked for, and waited for until it runs; fails with the reason where it does not. */
export async function createDatabase({ ann, all }: Lab, body: object): Promise<Made> {
  const made = await ann.post(all, { name: 'shop', ...body })
  if (made.status !== 202) throw new Error(`${made.status} ${JSON.stringify(made.body)}`)
  const path = `${all}/${made.body.id}`
  await untilRunning(ann, path)
  return { id: made.body.id, path, slug: made.body.slug }
}

export async function untilRunning(client: TestClient, path: string): Promise<void> {
  const found = await until(
    async () => {
      const { body } = await client.get(path)
      return body.status === 'running' || body.status === 'failed' ? body : undefined
    },
    'the database to run',
    runningMs
  )
  if (found.status === 'failed') throw new Error(`it failed: ${found.status_detail}`)
}

export async function untilStatus(client: TestClient, path: string, status: string): Promise<void> {
  const has = async (): Promise<boolean> => (await client.get(path)).body.status === status
  // A server that ends has to end several times, later and later.
  await until(has, `the status ${status}`, 120_000)
}

export async function containerOf(k: TestKernel, databaseId: string): Promise<string> {
  const [row] = await k.query<{ container_id: string }>(
    `select container_id from databases.database where id = '${databaseId}'`
  )
  if (row === undefined) throw new Error('there is no such database')
  return row.container_id
}

/** What a program in the container of a database says. */
export async function runIn(
  k: TestKernel,
  databaseId: string,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<string> {
  const lines: string[] = []
  const exitCode = await k.service(containerRuntime).exec(await containerOf(k, databaseId), command, {
    env,
    onLine: ({ text }) => {
      lines.push(text)
    },
    signal: new AbortController().signal
  })
  if (exitCode !== 0) throw new Error(`exit code ${exitCode}: ${lines.join('\n')}`)
  return lines.join('\n')
}
