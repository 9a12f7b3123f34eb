import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { bounded } from 'busbar/sdk'
import type {
  HappyCall,
  HappyCalls,
  HappyFixture,
  HappyFixtures,
  TestAnswer,
  TestClient,
  TestKernel
} from 'busbar/sdk/testing'
import type { PluginEntry } from '../../core/plugins/plugin-entry.js'

export interface Happy {
  readonly calls: HappyCalls
  readonly fixtures: HappyFixtures | undefined
}

/** Each plugin's own happy calls; a plugin with routes and without them fails when its calls are made. */
export async function happyOf(id: string): Promise<Happy> {
  const file = new URL(`../../plugins/${id}/test/happy-calls.ts`, import.meta.url)
  if (!existsSync(file)) return { calls: {}, fixtures: undefined }
  const { happyCalls = {}, happyFixtures } = (await import(file.href)) as {
    happyCalls?: HappyCalls
    happyFixtures?: HappyFixtures
  }
  return { calls: happyCalls, fixtures: happyFixtures }
}

const unique = (word: string): string => `${word}-${randomBytes(4).toString('hex')}`
export const running = (k: TestKernel): PluginEntry[] =>
  [...k.kernel.reconciler.entries.values()].filter(({ run }) => run !== undefined)

/** `plugins`: whose fixtures are made. */
export async function fixtureFor(
  k: TestKernel,
  happy: ReadonlyMap<string, Happy>,
  plugins: readonly string[] = order(k)
): Promise<HappyFixture> {
  const admin = await k.as.session()
  const name = unique('round')
  const project = await admin.post('/api/projects', { name, slug: name })
  let fixture: HappyFixture = {
    k,
    admin,
    unique,
    ids: { projectId: project.body.id as string, pluginId: 'projects' }
  }
  // In start order, so that a plugin finds what those it needs have made.
  for (const id of order(k).filter(id => plugins.includes(id))) {
    const more = await happy.get(id)?.fixtures?.(fixture)
    fixture = { ...fixture, ids: { ...fixture.ids, ...more } }
  }
  return fixture
}

const manifestOf = ({ discovered }: PluginEntry) =>
  'manifest' in discovered ? discovered.manifest : undefined

/** The plugins that one uses, whether it must or may; of a contract the plugin that implements it. */
function usedBy(k: TestKernel, id: string): string[] {
  const entry = k.kernel.reconciler.entries.get(id)
  const manifest = entry && manifestOf(entry)
  if (manifest === undefined) return []
  const known = [...running(k), ...k.kernel.reconciler.entries.values()]
  const providerOf = (used: string): string =>
    known.find(other => Object.hasOwn(manifestOf(other)?.implements ?? {}, used))?.id ?? used
  return Object.keys({ ...manifest.requires, ...manifest.optional }).map(providerOf)
}

/** The plugins that run and use this one, or are used by it. */
export const neighboursOf = (k: TestKernel, id: string): string[] =>
  order(k).filter(other => other !== id && (usedBy(k, other).includes(id) || usedBy(k, id).includes(other)))

/** What is turned off with a plugin: it and what needs it. */
export const turnedOffWith = (k: TestKernel, id: string): string[] => [
  id,
  ...k.kernel.reconciler.catalog.dependents(id)
]

/**
 * Sets of plugins that may be off at the same time, as those of one set know nothing of each other: each has the neighbours
 * that it has when it is off alone.
 */
export function strangers(k: TestKernel, ids: readonly string[]): string[][] {
  const sets: string[][] = []
  const knows = (id: string, other: string): boolean =>
    turnedOffWith(k, id).some(gone =>
      turnedOffWith(k, other).some(also => gone === also || neighboursOf(k, gone).includes(also))
    )
  for (const id of ids) {
    const set = sets.find(set => !set.some(other => knows(id, other)))
    if (set === undefined) sets.push([id])
    else set.push(id)
  }
  return sets
}

/** These plugins with all that they use, directly or not. */
export function neededBy(k: TestKernel, ids: readonly string[]): string[] {
  const found = new Set(ids)
  for (const id of found) for (const used of usedBy(k, id)) found.add(used)
  return [...found]
}

/** The ids of the plugins that run, those that others need first. */
export function order(k: TestKernel): string[] {
  const up = new Map(running(k).map(entry => [entry.id, entry]))
  const sorted: string[] = []
  const visit = (id: string): void => {
    const entry = up.get(id)
    if (entry === undefined || sorted.includes(id) || !('manifest' in entry.discovered)) return
    usedBy(k, id).forEach(visit)
    sorted.push(id)
  }
  ;[...up.keys()].sort().forEach(visit)
  return sorted
}

/** Makes one happy call and says what is wrong with the answer, if anything. */
export async function call(
  fixture: HappyFixture,
  method: string,
  url: string,
  made: HappyCall
): Promise<{ fault: string | null; answer: TestAnswer }> {
  fixture.k.resetRateLimits()
  const ids = { ...fixture.ids, ...made.ids }
  const path = url.replace(/:(\w+)/g, (_, param: string) => ids[param] ?? `no-${param}`)
  const client = made.as ?? fixture.admin
  const isStream = fixture.k
    .routes()
    .some(({ record }) => record.method === method && record.url === url && record.produces === eventStream)
  const answer = isStream
    ? await readStream(client, path, 'data')
    : await client.send(method, path + (made.query ?? ''), { body: made.body, headers: made.headers })
  const isHappy =
    made.expect === undefined ? answer.status >= 200 && answer.status < 400 : answer.status === made.expect
  return {
    fault: isHappy
      ? null
      : `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 200)}`,
    answer
  }
}

export const eventStream = 'text/event-stream'
const streamMs = 1000

/** A stream with what comes of it in a moment, or until it says anything: some never end. */
export async function readStream(
  client: TestClient,
  path: string,
  until: 'close' | 'data' = 'close'
): Promise<TestAnswer> {
  const stream = await client.open(path)
  let body = ''
  stream.setEncoding('utf8')
  stream.on('data', (text: string) => {
    body += text
    if (until === 'data') stream.destroy()
  })
  await bounded(async () => await once(stream, 'close'), { ms: streamMs, what: 'the stream' }).catch(() => {})
  stream.destroy()
  return { status: stream.statusCode ?? 0, headers: stream.headers, body }
}

/** Deletes what the round has made, on the engine too; what is still there after a while. */
export async function removeRound({ k, admin, ids }: HappyFixture): Promise<unknown[]> {
  k.resetRateLimits()
  await admin.delete(`/api/projects/${ids.projectId ?? ''}`)
  return await leftovers(k)
}

/** What is left of the projects that were deleted, once there was time to tear them down. */
export async function leftovers(k: TestKernel): Promise<unknown[]> {
  for (let n = 0; n < 1_200; n++) {
    if ((await k.query('select 1 from projects.project where deleting_at is not null')).length === 0)
      return []
    await sleep(100)
  }
  return await k.query(`
    select p.id, p.slug, a.slug as application, j.task_identifier, j.attempts, j.locked_by, j.run_at, j.last_error
    from projects.project p left join applications.application a on a.project_id = p.id left join graphile_worker.jobs j on true
    where p.deleting_at is not null`)
}
