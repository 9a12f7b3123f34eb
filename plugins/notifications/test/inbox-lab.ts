import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { RaisedNotification } from 'busbar/sdk'
import { TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import type { Notification } from '../schemas.js'

export const url = '/api/notifications'

type Told = Partial<Omit<RaisedNotification, 'occurredAt'>> & { readonly occurredAt?: Date }

/** Has a notification delivered, as the kernel does when an event is emitted; its id. */
export async function tell(k: TestKernel, fields: Told): Promise<string> {
  const raised = {
    id: randomUUID(),
    type: 'item.sold',
    severity: 'ok',
    audience: { kind: 'admins' },
    preference: null,
    title: 'Something was sold',
    body: '',
    link: null,
    occurredAt: new Date(),
    ...fields
  }
  await k.enqueue('notifications', 'on.notification', { raised })
  return raised.id
}

export const toUser = (userId: string | undefined, projectId: string | null = null) =>
  ({ kind: 'user', userId: userId ?? '', projectId }) as const
export const toProject = (projectId: string) => ({ kind: 'project', projectId }) as const

export const itemsOf = async (client: TestClient, query = ''): Promise<Notification[]> =>
  (await client.get(url + query)).body.items as Notification[]
export const titlesOf = async (client: TestClient): Promise<string[]> =>
  (await itemsOf(client, '?limit=200')).map(({ title }) => title)

/** Waits until the inbox shows so many. */
export async function holds(client: TestClient, count: number): Promise<Notification[]> {
  return await until(async () => {
    const items = await itemsOf(client, '?limit=200')
    return items.length === count ? items : undefined
  }, `${count} notifications are there`)
}

/** Waits until all that was told has been dealt with. */
export async function delivered(k: TestKernel): Promise<void> {
  await until(
    async () =>
      (
        await k.query(
          "select 1 from graphile_worker.jobs where task_identifier = 'notifications:on.notification'"
        )
      ).length === 0,
    'everything is delivered'
  )
}

export async function makeProject(client: TestClient, slug = 'shop'): Promise<string> {
  return (await client.post('/api/projects', { name: slug, slug })).body.id as string
}

export async function addMember(
  k: TestKernel,
  owner: TestClient,
  project: string,
  name: string,
  role = 'viewer'
) {
  k.resetRateLimits()
  const { email } = await k.user(name)
  return await owner.put(`/api/projects/${project}/members`, { email, role })
}

interface Frame {
  readonly id: string
  readonly notification: Notification
}

/** An event stream that is read as it comes. */
export class Stream {
  readonly frames: Frame[] = []
  pings = 0
  readonly ended: Promise<unknown>
  #rest = ''

  private constructor(readonly answer: IncomingMessage) {
    this.ended = once(answer, 'close')
    answer.setEncoding('utf8')
    answer.on('data', (text: string) => {
      this.#take(text)
    })
  }

  static async open(client: TestClient, lastEventId?: string): Promise<Stream> {
    const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const answer = await new TestClient(client.url, { ...client.credential, ...headers }).open(
      `${url}/stream`
    )
    const stream = new Stream(answer)
    await until(() => stream.pings > 0, 'the stream is open')
    return stream
  }

  get titles(): string[] {
    return this.frames.map(({ notification }) => notification.title)
  }

  async has(count: number): Promise<void> {
    await until(() => this.frames.length >= count, `${count} events have come`)
  }

  close(): void {
    this.answer.destroy()
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split('\n\n')
    this.#rest = parts.pop() ?? ''
    for (const part of parts) {
      const [first = '', second = ''] = part.split('\n')
      if (part === ': ping') this.pings++
      else
        this.frames.push({
          id: first.slice('id: '.length),
          notification: JSON.parse(second.slice('data: '.length)) as Notification
        })
    }
  }
}
