import { randomUUID } from 'node:crypto'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { logArchive } from '../api.js'
import { ended, openLab } from './logs-lab.js'

/** A database that nothing has been made for: a test has its containers. */
const insertDatabase = `
  insert into databases.database (
    id, project_id, name, slug, type, version, status, container_port, backup_mode, credentials, volume, created_at, updated_at
  ) values ($1::uuid, $2, 'Logged', $1::text, 'other', '', 'stopped', 80, 'none', '', $1::text, now(), now())`

/** Of a frame: behind its id and the time of the line. */
const textOf = (frame: string): string => /^id: \S+\ndata: \S+ (.*)$/.exec(frame)?.[1] ?? frame

test('a plugin with containers of another kind has their output kept, told and shown by what it contributes', async t => {
  const lab = await openLab(t)
  if (lab === undefined) return
  const { k, runtime } = lab
  const slug = `l${randomUUID().slice(0, 8)}`
  const { body: project } = await lab.client.post('/api/projects', { name: slug, slug })
  const databaseId = randomUUID()
  await k.query(insertDatabase, [databaseId, project.id])
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
