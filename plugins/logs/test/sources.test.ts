import { randomUUID } from 'node:crypto'
import { projectTable } from 'busbar/api/projects'
import { definePlugin, kernel, type Resolved } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { logArchive, logSources } from '../api.js'
import { ended, openLab } from './logs-lab.js'

const needs = { db: kernel.database }

/** A plugin with databases, as far as their logs go. */
const databases = {
  manifest: {
    id: 'databases',
    requires: { projects: '^0.1.0', logs: '^0.1.0' },
    grants: ['database' as const]
  },
  definition: definePlugin({
    id: 'databases',
    needs,
    migrations: [
      {
        name: '001-create-databases',
        phase: 'expand',
        sql: `create table $schema.database (
          id uuid primary key, project_id uuid not null references ${projectTable.reference} on delete restrict
        )`
      }
    ],
    start: ({ use }: { use: Resolved<typeof needs> }) => use,
    resources(resource) {
      resource({ kind: 'database', table: 'database', parents: { project: 'project_id' } })
    },
    contributes(contribute) {
      contribute(logSources, 'database', { sourceOf: ({ databaseId }) => databaseId })
    }
  })
}

/** Of a frame: behind its id and the time of the line. */
const textOf = (frame: string): string => /^id: \S+\ndata: \S+ (.*)$/.exec(frame)?.[1] ?? frame

test('a plugin with containers of another kind has their output kept, told and shown by what it contributes', async t => {
  const lab = await openLab(t, { inline: [databases] })
  if (lab === undefined) return
  const { k, runtime } = lab
  const slug = `l${randomUUID().slice(0, 8)}`
  const { body: project } = await lab.client.post('/api/projects', { name: slug, slug })
  const databaseId = randomUUID()
  await k.query('insert into databases.database (id, project_id) values ($1, $2)', [databaseId, project.id])
  const channel = `container-logs:${databaseId}`
  const socket = await k.socket(lab.client)
  const stranger = await k.socket(await k.as.session('stranger'))
  for (const one of [socket, stranger]) one.subscribe(channel)
  t.match(await stranger.next(frame => frame.channel === channel), {
    event: 'error',
    data: { error: 'access denied' }
  })
  socket.subscribe(`container-logs:${randomUUID()}`)
  t.match(await socket.next(frame => frame.channel !== channel), { event: 'error' }, 'no source of that id')

  const network = await runtime.ensureNetwork({ id: project.id, slug })
  const run = async (id: string, script: string) => {
    const container = await runtime.create({
      name: `logs-${randomUUID()}`,
      image: 'busybox:lab',
      owner: { projectId: project.id, databaseId: id },
      network,
      env: {},
      command: ['sh', '-c', script],
      cpuLimit: 0,
      memoryLimit: 0,
      caps: 'minimal',
      readonlyRootfs: true,
      restarts: false
    })
    await runtime.start(container)
    await ended(lab, container)
    return container
  }
  const container = await run(databaseId, 'echo "LOG:  ready"; echo "FATAL:  not so" >&2')
  const archive = k.service(logArchive)
  const { signal } = new AbortController()
  const page = async (id = databaseId) =>
    await archive.history(id, {}, { limit: 10, offset: 0 }, { asker: 'ann', signal })
  await until(async () => (await page()).rows.length === 2, 'its lines')
  const line = {
    source_type: 'database',
    source_id: databaseId,
    container_id: container,
    deployment_id: null
  }
  t.match(
    (await page()).rows.find(({ stream }) => stream === 'stderr'),
    { ...line, level: 'error', message: 'FATAL:  not so' }
  )
  await until(() => socket.frames.filter(frame => frame.event === 'log').length === 2, 'the same, live')
  t.match(await socket.next(frame => frame.data.message === 'LOG:  ready'), {
    data: { level: 'info', deployment_id: '', container_id: container }
  })
  t.match(await archive.sessions(databaseId), [
    { container_id: container, deployment_id: null, line_count: 2 }
  ])
  const frames: object[] = []
  let written = ''
  for await (const some of archive.stream(databaseId, { containerId: container, follow: false, signal }))
    if (some instanceof Uint8Array) written += Buffer.from(some).toString()
    else frames.push(...[some].flat())
  // Of two streams, which is read first is the engine's.
  t.match(written.trimEnd().split('\n\n').map(textOf).sort(), ['FATAL:  not so', 'LOG:  ready'])
  t.match(frames, [{ event: 'done' }])
  await archive.forget(databaseId)
  t.same((await page()).rows, [])
  await socket.close()
  await stranger.close()

  await k.disable('databases')
  const other = randomUUID()
  await run(other, 'echo before')
  await k.enable('databases')
  await until(async () => (await page(other)).rows.length === 1, 'what was written before the plugin came')
})
