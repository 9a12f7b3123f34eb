/** What all applications of a project use, in one answer. */
import { randomUUID } from 'node:crypto'
import type { ContainerState } from 'busbar/api/containers'
import { Problem, type ProjectId } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import pino from 'pino'
import { test } from 'tap'
import type { ApplicationRow, RunningApplication } from '../application/application-store.js'
import type { ContainerUsage } from '../application/container-usage.js'
import { ProjectUsage } from '../application/project-usage.js'

const project = randomUUID() as ProjectId
const deployment = randomUUID()

/** A project in memory, and what was asked about it. */
function setUp({ running = 1, recent = false } = {}) {
  const clock = testClock('2026-01-31T12:00:00Z')
  const rows: ApplicationRow[] = Array.from({ length: running }, () => ({
    id: randomUUID(),
    project_id: project,
    status: 'running',
    container_deployment_id: deployment,
    container_port: 8080
  }))
  const asked = { store: 0, list: 0, usage: 0, recent: [] as number[] }
  const fault: { list?: Error; usage?: Error } = {}
  const logged: string[] = []
  const domains = new Map<string, unknown>()
  const usage: ContainerUsage = {
    measuredAt: clock.now(),
    cpuPercent: 12.5,
    memoryBytes: 100,
    memoryLimitBytes: 200,
    receivedBytes: 1,
    sentBytes: 2
  }
  const noted = new Map<string, string>()
  const runtime = {
    list: async () => {
      asked.list++
      if (fault.list !== undefined) throw fault.list
      return rows.map(({ id }) => ({
        id: `container of ${id}`,
        status: 'running',
        startedAt: '2026-01-31T11:59:00.5Z',
        owner: { applicationId: id, deploymentId: deployment }
      })) as unknown as ContainerState[]
    }
  }
  let isOff = false
  const reader = new ProjectUsage({
    clock,
    log: pino(
      { level: 'info' },
      { write: (line: string) => void logged.push(JSON.parse(line).msg as string) }
    ),
    store: {
      ofProject: async () => {
        asked.store++
        return rows
      }
    } as never,
    containers: {
      note: (id: string, { containerId }: { containerId: string }) => noted.set(id, containerId)
    } as never,
    samples: {
      usage: async (_: RunningApplication) => {
        asked.usage++
        if (fault.usage !== undefined) throw fault.usage
        return usage
      },
      recent: (_: string, maxAgeMs: number) => {
        asked.recent.push(maxAgeMs)
        return recent ? usage : undefined
      }
    },
    runtime: { get: () => (isOff ? undefined : runtime), whileAvailable: async () => {} },
    domains: {
      get: () => undefined,
      keys: () => [...domains.keys()],
      entries: () =>
        [...domains].map(([key, answer]) => ({
          key,
          plugin: key,
          value: {
            // As one that asks a database: it answers, and not at once.
            domainsOf: async () => {
              await new Promise(resolve => setTimeout(resolve, 20))
              return answer as ReadonlyMap<string, string>
            }
          }
        }))
    }
  })
  return {
    clock,
    rows,
    asked,
    fault,
    logged,
    domains,
    noted,
    turnOff: () => {
      isOff = true
    },
    read: async () => await reader.read(project)
  }
}

test('one statement and one look at the engine answer for all, and what was found is remembered', async t => {
  const { rows, asked, noted, read } = setUp({ running: 10 })
  const answer = await read()
  t.equal(Object.keys(answer).length, 10)
  const { id = '' } = rows[0] ?? {}
  t.same(answer[id], {
    cpu_percent: 12.5,
    memory_used: 100,
    memory_limit: 200,
    uptime_seconds: 59,
    status: 'running',
    domain: '',
    port: 8080
  })
  t.match(asked, { store: 1, list: 1, usage: 10 })
  t.equal(noted.get(id), `container of ${id}`)
})

test('who asks meanwhile, or within two seconds, shares the answer', async t => {
  const { clock, asked, read } = setUp()
  const answers = await Promise.all([read(), read()])
  t.equal(answers[0], answers[1])
  await clock.advance(1900)
  await read()
  t.equal(asked.store, 1)
  await clock.advance(200)
  await read()
  t.equal(asked.store, 2)
})

test('nothing is asked of the engine where nothing runs', async t => {
  const { rows, asked, fault, read } = setUp()
  for (const row of rows) Object.assign(row, { status: 'stopped', container_port: null })
  fault.list = new Error('away')
  t.match(Object.values(await read()), [{ status: 'stopped', cpu_percent: 0, uptime_seconds: 0, port: 0 }])
  t.equal(asked.list, 0)
})

test('a failure is for who has asked, and not for who asks next', async t => {
  const { fault, read, turnOff } = setUp()
  fault.list = new Problem(503, 'E_ENGINE_UNREACHABLE', 'away')
  await t.rejects(read(), { code: 'E_ENGINE_UNREACHABLE' })
  delete fault.list
  fault.usage = new Problem(503, 'E_ENGINE_UNREACHABLE', 'away')
  await until(
    async () =>
      await read().then(
        () => false,
        () => true
      ),
    'a refusal'
  )
  delete fault.usage
  t.equal(Object.keys(await read()).length, 1)
  turnOff()
})

test('without a runtime what runs cannot be told', async t => {
  const { turnOff, read } = setUp()
  turnOff()
  await t.rejects(read(), { status: 503, code: 'E_PLUGIN_OFF' })
})

test('a container that the engine does not measure uses nothing, and the others are told', async t => {
  const { fault, logged, read } = setUp({ running: 2 })
  fault.usage = new Problem(502, 'E_ENGINE_REFUSED', 'no')
  t.match(Object.values(await read()), [{ cpu_percent: 0, uptime_seconds: 59 }, { memory_used: 0 }])
  t.same(logged, ['an application could not be measured', 'an application could not be measured'])
})

test('of many that run, what was measured in the last minutes is taken', async t => {
  const few = setUp({ running: 64, recent: true })
  await few.read()
  t.same([...new Set(few.asked.recent)], [1000])
  const many = setUp({ running: 65, recent: true })
  await many.read()
  t.same([...new Set(many.asked.recent)], [300_000])
  t.equal(many.asked.usage, 0)
})

test('other plugins tell under which domain they are reached; what they answer is taken only as it is agreed', async t => {
  const { rows, domains, logged, read } = setUp()
  const { id = '' } = rows[0] ?? {}
  domains.set('bad', { [id]: 'example.com' })
  domains.set('worse', new Map([[id, 'x'.repeat(254)]]))
  domains.set('good', new Map([[id, 'shop.example.com']]))
  t.match(await read(), { [id]: { domain: 'shop.example.com' } })
  t.equal(logged.length, 2)
})
