import { randomUUID } from 'node:crypto'
import { scopes } from 'busbar/sdk'
import { sendProblem } from '../../core/http/answers.js'
import { type RequestTarget, RouteTable } from '../../core/http/route-table.js'
import { TestClient } from './test-client.js'
import type { TestKernel } from './test-kernel.js'
import { TestSocket } from './test-socket.js'

/** What became of one caller at one door: a refusal's status and code, or that the handler would have run. */
export interface MatrixRow {
  /** `GET /api/projects/{projectId}` or `channel build-logs:{deploymentId}`. */
  readonly operation: string
  readonly plugin: string
  readonly who: string
  readonly outcome: 'admitted' | `${number} ${string}`
}

/** What the callers of the matrix own. Every id is of a real resource. */
interface MatrixFixtures {
  /** A project of `owner`, in which `viewer` and `editor` are what they are called, and one of `stranger`. */
  readonly project: string
  readonly foreignProject: string
  /** A project of `owner`, shared with every member. */
  readonly sharedProject: string
  /** By path parameter (`applicationId`): one inside each project. */
  readonly resources: Readonly<
    Record<string, { readonly inside: string; readonly foreign: string; readonly shared: string }>
  >
}

interface Who {
  readonly name: string
  readonly client: TestClient
  readonly at?: 'foreign' | 'nested' | 'shared'
}

/**
 * Knocks at every route and channel as every kind of caller, and says who was let in. The handlers do
 * not run: an admitted request is answered by the matrix, so nothing is changed by asking.
 */
export async function accessMatrix(k: TestKernel, fixtures: MatrixFixtures): Promise<MatrixRow[]> {
  const { edge } = k.kernel
  const callers = await everyCaller(k, fixtures)
  const served = edge.table
  edge.table = new RouteTable(served.entries.map(({ record }) => ({ record, instance: admitting })))
  try {
    const rows: MatrixRow[] = []
    for (const {
      record: { method, url, plugin, params }
    } of served.entries) {
      const operation = `${method} ${url.replace(/:(\w+)/g, '{$1}')}`
      for (const { name, client, at } of callers) {
        if (at === 'nested' && !params.some(param => param in fixtures.resources)) continue
        edge.options.guard.limiter.reset()
        const answer = await client.send(method, pathFor(url, fixtures, at))
        rows.push({
          operation,
          plugin,
          who: name,
          outcome:
            answer.status === admittedStatus ? 'admitted' : `${answer.status} ${answer.body?.code as string}`
        })
      }
    }
    rows.push(...(await channelRows(k, fixtures, callers)))
    return rows
  } finally {
    edge.table = served
  }
}

/** What the matrix answers in the place of a handler. */
export const admittedStatus = 299
const admitting: RequestTarget = {
  inFlight: 0,
  dispatch({ raw, response }) {
    raw.resume()
    sendProblem(response, { status: admittedStatus, code: 'ADMITTED', message: 'admitted' })
  },
  awaiting: async decision => await decision,
  expireOverdue() {}
}

async function everyCaller(k: TestKernel, { project, foreignProject }: MatrixFixtures): Promise<Who[]> {
  const owner = 'owner'
  const tokens = await Promise.all(
    scopes.map(async scope => ({ name: `token ${scope}`, client: await k.as.token(scope, { user: owner }) }))
  )
  const session = await k.as.session(owner)
  return [
    { name: 'anonymous', client: k.as.anonymous() },
    { name: 'bad token', client: new TestClient(k.url, { authorization: 'Bearer busbar_pat_wrong' }) },
    ...tokens,
    {
      name: 'token write pinned inside',
      client: await k.as.token('write', { user: owner, pins: [project] })
    },
    // The admin reaches every project, so that only the pin can refuse.
    {
      name: 'admin token write pinned outside',
      client: await k.as.token('write', { pins: [foreignProject] })
    },
    { name: 'admin token write', client: await k.as.token('write') },
    { name: 'session', client: session },
    {
      name: 'session without CSRF',
      client: new TestClient(k.url, { cookie: session.credential.cookie ?? '' })
    },
    { name: 'session of a stranger', client: await k.as.session('stranger') },
    { name: 'session of a member at a shared project', client: await k.as.session('stranger'), at: 'shared' },
    { name: 'session of a viewer', client: await k.as.session('viewer') },
    { name: 'session of an editor', client: await k.as.session('editor') },
    { name: 'token write of a viewer', client: await k.as.token('write', { user: 'viewer' }) },
    { name: 'token read of an editor', client: await k.as.token('read', { user: 'editor' }) },
    { name: 'session of a viewer at a foreign project', client: await k.as.session('viewer'), at: 'foreign' },
    { name: 'admin session', client: await k.as.session() },
    { name: 'session at a foreign project', client: session, at: 'foreign' },
    { name: 'admin session at a nested id of another project', client: await k.as.session(), at: 'nested' }
  ]
}

function pathFor(
  url: string,
  { project, foreignProject, sharedProject, resources }: MatrixFixtures,
  at: Who['at']
): string {
  return url.replace(/:(\w+)/g, (_, param: string) => {
    if (param === 'projectId')
      return at === 'foreign' ? foreignProject : at === 'shared' ? sharedProject : project
    const resource = resources[param]
    if (resource !== undefined)
      return at === undefined ? resource.inside : at === 'shared' ? resource.shared : resource.foreign
    return param.endsWith('Id') && param !== 'pluginId' ? randomUUID() : 'x'
  })
}

/** A subscription is not acknowledged: a client that gets a message was let in. */
async function channelRows(
  k: TestKernel,
  { resources }: MatrixFixtures,
  callers: readonly Who[]
): Promise<MatrixRow[]> {
  const rows: MatrixRow[] = []
  const channels = [...k.kernel.reconciler.entries.values()].flatMap(
    entry => entry.run?.records.channels ?? []
  )
  for (const { name: who, client, at } of callers) {
    if (at === 'nested') continue
    k.kernel.edge.options.guard.limiter.reset()
    const socket = await TestSocket.open(client).catch((error: Error) => error)
    for (const { name, plugin, prefix, param, events } of channels) {
      const operation = `channel ${name}`
      if (socket instanceof Error) {
        rows.push({ operation, plugin, who, outcome: `${Number(/\d+/.exec(socket.message)?.[0])} upgrade` })
        continue
      }
      const resource = param === null ? undefined : resources[param]
      const channel =
        prefix +
        (param === null
          ? ''
          : ((at === 'foreign' ? resource?.foreign : at === 'shared' ? resource?.shared : resource?.inside) ??
            randomUUID()))
      socket.subscribe(channel)
      // Answered by the hub itself and in order: when it is here, the subscription has been decided.
      const marker = `nowhere:${rows.length}`
      socket.subscribe(marker)
      await socket.next(frame => frame.channel === marker)
      const said = rows.length
      const speaking = setInterval(() => {
        k.publish(channel, Object.keys(events)[0] ?? '', said)
      }, 20)
      const heard = await socket.next(
        frame => frame.channel === channel && (frame.event === 'error' || frame.data === said)
      )
      clearInterval(speaking)
      rows.push({
        operation,
        plugin,
        who,
        outcome: heard.event === 'error' ? '403 access denied' : 'admitted'
      })
    }
    if (!(socket instanceof Error)) await socket.close()
  }
  return rows
}
