import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ContainerRuntime, containerRuntime } from 'busbar/api/containers'
import {
  createTestKernel,
  type TestClient,
  type TestKernel,
  type TestKernelOptions,
  until
} from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type EventReader, readEvents } from './event-reader.js'

/** An application whose containers are made by hand, as deploys would make them. */
export class LabApplication {
  constructor(
    readonly lab: LogsLab,
    readonly projectId: string,
    readonly id: string,
    readonly path: string
  ) {}

  /** A container that runs this script in a shell, of a deployment of its own; its id. */
  async run(script: string, deploymentId: string = randomUUID()): Promise<string> {
    const { runtime } = this.lab
    const network = await runtime.ensureNetwork({ id: this.projectId, slug: this.projectId.slice(0, 8) })
    const id = await runtime.create({
      name: `logs-${randomUUID()}`,
      image: 'busybox:lab',
      owner: { projectId: this.projectId, applicationId: this.id, deploymentId },
      network,
      env: {},
      command: ['sh', '-c', script],
      cpuLimit: 0,
      memoryLimit: 0,
      caps: 'minimal',
      readonlyRootfs: true,
      restarts: false
    })
    await runtime.start(id)
    return id
  }

  /** The container of this deployment is the application's. */
  async serves(deploymentId: string): Promise<void> {
    await this.lab.k.query(
      "update applications.application set container_deployment_id = $1, status = 'running' where id = $2",
      [deploymentId, this.id]
    )
  }

  async history(query = ''): Promise<ReadonlyArray<Record<string, string>>> {
    const answer = await this.lab.client.get(`${this.path}/logs/history${query}`)
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    return answer.body
  }

  /** Every line that is kept, the first one first, page by page. */
  async whole(query = ''): Promise<Array<Record<string, string>>> {
    const lines: Array<Record<string, string>> = []
    let cursor = ''
    do {
      this.lab.k.resetRateLimits()
      const answer = await this.lab.client.get(`${this.path}/logs/history?limit=1000${query}${cursor}`)
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      lines.push(...answer.body)
      const next = answer.headers['x-next-cursor']
      cursor = next === undefined ? '' : `&cursor=${String(next)}`
    } while (cursor !== '')
    return lines.reverse()
  }

  async stream(query = '', headers: Record<string, string> = {}): Promise<EventReader> {
    const { client, k } = this.lab
    k.resetRateLimits()
    const { TestClient: Client } = await import('busbar/sdk/testing')
    const asked: TestClient = new Client(client.url, { ...client.credential, ...headers }, client.userId)
    return readEvents(await asked.open(`${this.path}/logs${query}`))
  }
}

export interface LogsLab {
  k: TestKernel
  client: TestClient
  readonly runtime: ContainerRuntime
  application(name?: string): Promise<LabApplication>
  /** Stops the platform and starts another on what it has left. */
  restart(options?: TestKernelOptions): Promise<void>
}

/** A platform with an engine; undefined without one, when the test is skipped. */
export async function openLab(t: Test, options: TestKernelOptions = {}): Promise<LogsLab | undefined> {
  if (!(await requireEngine(t))) return undefined
  const k = await createTestKernel(options)
  const lab = {
    k,
    client: await k.as.session('ann'),
    get runtime() {
      return lab.k.service(containerRuntime)
    },
    async application(name = 'web') {
      const slug = `l${randomUUID().slice(0, 8)}`
      const { body: project } = await lab.client.post('/api/projects', { name: slug, slug })
      const { body } = await lab.client.post(`/api/projects/${project.id}/applications`, {
        name,
        type: 'image',
        build_type: 'image',
        source_image: 'busybox:lab'
      })
      return new LabApplication(
        lab,
        project.id,
        body.id,
        `/api/projects/${project.id}/applications/${body.id}`
      )
    },
    async restart(changes: TestKernelOptions = {}) {
      await lab.k.stop()
      lab.k = await createTestKernel({ ...options, ...changes, state: lab.k.state })
      lab.client = await lab.k.as.session('ann')
    }
  }
  t.teardown(async () => {
    await lab.k.close()
  })
  return lab
}

/** Writes `count` lines of this length as fast as it can. */
export const burst = (count: number, length = 80): string =>
  `i=0; while [ $i -lt ${count} ]; do echo "line $i ${'x'.repeat(length)}"; i=$((i+1)); done`

/** Where the numbers of lines do not go on as they should; at most five of the places. */
export const jumps = (messages: readonly string[]): string[] =>
  messages
    .map(message => Number(/line (\d+) /.exec(message)?.[1] ?? Number.NaN))
    .flatMap((n, at, numbers) => {
      const before = at === 0 ? -1 : (numbers[at - 1] ?? -1)
      return n === before + 1 ? [] : [`${n} after ${before}`]
    })
    .slice(0, 5)

/** Resolves when the container has ended. */
export async function ended(lab: LogsLab, id: string): Promise<void> {
  await until(async () => (await lab.runtime.inspect(id))?.status === 'exited', 'the container has ended')
}

/** Writes `count` lines, 20 at a time, for about `count / 400` seconds. */
export const steady = (count: number): string =>
  `i=0; while [ $i -lt ${count} ]; do j=0; while [ $j -lt 20 ]; do echo "line $i x"; i=$((i+1)); j=$((j+1)); done; sleep 0.05; done`

const messagesOf = async (application: LabApplication): Promise<string[]> =>
  (await application.whole()).map(({ message = '' }) => message)

/** All lines of a container that has ended, or will soon, are kept: each once and in order. */
export async function isKeptWhole(
  t: Test,
  lab: LogsLab,
  application: LabApplication,
  container: string,
  count: number
) {
  await ended(lab, container)
  await until(
    async () => (await application.history('?limit=1'))[0]?.message === `line ${count - 1} x`,
    'the last line'
  )
  const found = await messagesOf(application)
  t.same(jumps(found), [])
  t.equal(found.length, count)
}

/** An outage of so many milliseconds. */
export const outage = async (ms: number): Promise<void> => {
  await sleep(ms)
}
