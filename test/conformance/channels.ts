import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { startGitServer } from '../../lab/git-server.js'
import type { Claim } from './claims.js'
import type { LiveClient } from './live-client.js'
import { expect, type Stage, unique } from './stage.js'

/** All that the contract has; each is described, or refused as every other unlisted one. */
const contractChannels = [
  'metrics:host',
  'metrics:app:{applicationId}',
  'build-logs:{deploymentId}',
  'container-logs:{sourceId}',
  'requests:{applicationId}',
  'requests:all',
  'container-status:{applicationId}',
  'database-status:{databaseId}',
  'platform'
] as const

/** Of these the claims below, and those on databases, show what they tell. */
const told: readonly string[] = [
  'metrics:host',
  'metrics:app:{applicationId}',
  'build-logs:{deploymentId}',
  'container-logs:{sourceId}',
  'container-status:{applicationId}',
  'database-status:{databaseId}',
  'requests:{applicationId}',
  'requests:all',
  'platform'
]

const dockerfile = `FROM busybox:lab
RUN for n in 1 2 3 4 5 6; do echo "line $n"; sleep 0.3; done
CMD ["sh", "-c", "trap 'exit 0' TERM; while true; do echo tick; sleep 0.2; done"]
`

/** What `/api/asyncapi.json` says: by channel, whether a whole frame is as it is described. */
async function describedChannels(stage: Stage): Promise<ReadonlyMap<string, readonly ValidateFunction[]>> {
  const { body: api } = expect(await stage.act({}, 'GET', '/api/asyncapi.json'), 200)
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  // CommonJS: the function is the module itself at run time, `default` by its types.
  ;(formats as unknown as (ajv: Ajv2020) => void)(ajv)
  ajv.addSchema({ $id: 'asyncapi', ...(api as object) })
  const found = new Map<string, readonly ValidateFunction[]>()
  for (const channel of Object.values<any>(api.channels)) {
    if (channel.address === null) continue
    const validators = Object.values<any>(channel.messages).map(({ $ref }) =>
      ajv.compile({ $ref: `asyncapi${$ref as string}/payload` })
    )
    found.set(channel.address, validators)
  }
  return found
}

/** A visitor of an application, under its hostname. Names below .localhost are this machine's, whatever its resolver says. */
async function visit(address: string): Promise<void> {
  const { host, port, pathname, search } = new URL(address)
  await new Promise<void>((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: pathname + search, headers: { Host: host } }, answer => {
      answer.resume().on('end', resolve)
    }).on('error', reject)
  })
}

/** What is wrong with the frames of a channel by its description. */
function faultsOf(client: LiveClient, channel: string, validators: readonly ValidateFunction[]): string[] {
  return client
    .on(channel)
    .filter(frame => !validators.some(isValid => isValid({ ...frame, channel }) === true))
    .map(frame => `${JSON.stringify(frame)}: ${JSON.stringify(validators.map(({ errors }) => errors))}`)
}

export const channelClaims: readonly Claim[] = [
  {
    title: 'channels tell what becomes of an application, and of the machine, as they are described',
    says: [
      'A channel has a description at `/api/asyncapi.json`, and its frames are as that says.',
      'metrics:host | metrics | host CPU, memory, disk, once per second | admins',
      "metrics:app:{applicationId} | metrics | one application's container stats, every two seconds; sampled only while subscribed, so the first message can take up to two seconds | project access",
      'build-logs:{deploymentId} | log, done | build output; `done` with null data when the build ends (the only channel that terminates) | project access',
      'container-status:{applicationId} | status | object with application_id and status when the container changes state | project access',
      'build output appears on the build-logs channel',
      'A build-logs subscription ends with a `done` event when the build ends.',
      'Container status changes of an application or database are announced as `status` events on the status channels.',
      'Metrics cadence: host once per second, application every two seconds',
      'requests:{applicationId} | request | proxy request traces of one application | project access',
      'requests:all | request | traces of every application | admins; never a project-pinned token',
      'metrics:host: one sampler for all.',
      'metrics:app: nothing while the application does not run; the subscription stays.',
      'container-logs: follows the application across deployments; one frame a line.',
      'build-logs: `done` once, when the deployment leaves `building` (failure and cancel too), then unsubscribed; subscribing after the end sends nothing.',
      'container-status, database-status: only on a changed status, after the row is written.'
    ],
    async holds(t, stage) {
      const { admin, owner } = stage.cast
      const described = await describedChannels(stage)
      const root = await mkdtemp(join(tmpdir(), 'busbar-conformance-git-'))
      const git = await startGitServer({ root })
      t.teardown(async () => {
        await git.close()
        await rm(root, { recursive: true, force: true })
      })
      const { url } = await git.createRepository('ticks', { Dockerfile: dockerfile, seed: randomBytes(8) })
      const path = `/api/projects/${stage.of.projectId}/applications`
      const { body: application } = expect(
        await stage.act(owner.session, 'POST', path, {
          name: unique('ticks'),
          type: 'git',
          build_type: 'dockerfile',
          source_repo: url,
          branch: 'main',
          health_check_type: 'none'
        }),
        201
      )
      const status = `container-status:${application.id as string}`
      const usage = `metrics:app:${application.id as string}`
      const client = await stage.connect(owner.session)
      const hosts = [await stage.connect(admin.session), await stage.connect(admin.session)]
      const lines = `container-logs:${application.id as string}`
      client.subscribe(status, usage, lines)
      for (const host of hosts) host.subscribe('metrics:host')

      const { body: deployment } = expect(
        await stage.act(owner.session, 'POST', `${path}/${application.id as string}/deploy`),
        202
      )
      const logs = `build-logs:${deployment.id as string}`
      client.subscribe(logs)
      await client.next(
        ({ channel, event }) => channel === logs && event === 'done',
        'the end of the build',
        120_000
      )
      t.equal(client.on(usage).length, 0, 'nothing is measured of what does not run')
      const running = await client.next(
        ({ channel, data }) => channel === status && data.status === 'running',
        'it runs',
        60_000
      )
      t.same(running.data, { application_id: application.id, status: 'running' })
      const heard = client.on(logs)
      t.ok(
        heard.some(({ data }) => data?.msg === 'line 6'),
        'what the build wrote'
      )
      t.same(
        heard.filter(({ event }) => event === 'done').map(({ data }) => data),
        [null],
        'one end'
      )
      t.equal(heard.at(-1)?.event, 'done', 'and nothing after it')

      // A busy machine measures late, never early: of the first ones two may come close together.
      const spanOf = (listener: LiveClient, channel: string): number => {
        const times = listener.on(channel).map(({ data }) => Date.parse(data.recorded_at))
        return (times.at(4) ?? 0) - (times.at(0) ?? 0)
      }
      await stage.waits(() => client.on(usage).length >= 5, 'five measurements')
      t.ok(spanOf(client, usage) >= 5_000, `every two seconds: ${spanOf(client, usage)} ms for four`)
      for (const host of hosts) {
        await stage.waits(() => host.on('metrics:host').length >= 5, 'five of the machine')
        t.ok(
          spanOf(host, 'metrics:host') >= 2_500,
          `once a second: ${spanOf(host, 'metrics:host')} ms for four`
        )
      }

      const requests = `requests:${application.id as string}`
      client.subscribe(requests)
      for (const host of hosts) host.subscribe('requests:all')
      const { body: addresses } = expect(
        await stage.act(owner.session, 'GET', `${path}/${application.id as string}/addresses`),
        200
      )
      // It serves no HTTP: that nobody answers is a request too.
      await visit(`${addresses[0].url as string}visit?token=s3cr3t`)
      for (const [listener, channel] of [
        [client, requests],
        ...hosts.map(host => [host, 'requests:all'] as const)
      ] as const) {
        const frame = await listener.next(one => one.channel === channel, 'the request')
        t.match(frame, {
          event: 'request',
          data: { application_id: application.id, path: '/visit?token=[REDACTED]', status_code: 502 }
        })
      }

      const tickOf = async (deploymentId: unknown, what: string): Promise<void> => {
        await client.next(
          ({ channel, data }) =>
            channel === lines && data.message === 'tick' && data.deployment_id === deploymentId,
          what,
          120_000
        )
      }
      await tickOf(deployment.id, 'a line of it')
      const { body: next } = expect(
        await stage.act(owner.session, 'POST', `${path}/${application.id as string}/deploy`),
        202
      )
      await tickOf(next.id, 'a line of its next deployment')
      await stage.waits(async () => {
        const { body } = await stage.act(
          owner.session,
          'GET',
          `${path}/${application.id as string}/deployments`
        )
        return body[0]?.id === next.id && body[0]?.status === 'success'
      }, 'the next deployment to serve')
      t.same(
        client.on(lines).filter(({ data }) => data.message !== 'tick'),
        [],
        'one frame a line'
      )

      const late = await stage.connect(owner.session)
      late.subscribe(logs)
      expect(await stage.act(owner.session, 'POST', `${path}/${application.id as string}/stop`), 200)
      const stopped = await client.next(
        ({ channel, data }) => channel === status && data.status === 'stopped',
        'it is stopped',
        60_000
      )
      t.same(
        (await stage.act(owner.session, 'GET', `${path}/${application.id as string}`)).body.status,
        stopped.data.status,
        'the row was written before'
      )
      t.same(late.frames, [], 'a subscription after the end hears nothing')
      const statuses = client.on(status).map(({ data }) => data.status as string)
      t.same(
        statuses.filter((one, at) => one === statuses[at - 1]),
        [],
        `only what has changed: ${statuses.join(' ')}`
      )
      t.equal(client.end, undefined)
      for (const [listener, name, template] of [
        [client, status, 'container-status:{applicationId}'],
        [client, usage, 'metrics:app:{applicationId}'],
        [client, logs, 'build-logs:{deploymentId}'],
        [client, lines, 'container-logs:{sourceId}'],
        [client, requests, 'requests:{applicationId}'],
        [hosts[0] as LiveClient, 'requests:all', 'requests:all'],
        [hosts[0] as LiveClient, 'metrics:host', 'metrics:host']
      ] as const)
        t.same(faultsOf(listener, name, described.get(template) ?? []), [], template)
    }
  },
  {
    says: [
      'platform | update | object with `updating` when a self-update starts or fails before touching the host | any signed-in caller, pinned tokens included',
      'metrics:host and requests:all need the same rights as GET /api/metrics/host and GET /api/requests.'
    ],
    async holds(t, stage) {
      const { admin, owner, stranger } = stage.cast
      const described = await describedChannels(stage)
      const pinned = await stage.makeToken(owner, 'read', [stage.of.projectId])
      const ofAdmin = await stage.makeToken(admin, 'read')
      for (const [who, isAdmin] of [
        [stranger.session, false],
        [pinned.credential, false],
        [ofAdmin.credential, true],
        [admin.session, true]
      ] as const) {
        const client = await stage.connect(who)
        const unlisted = contractChannels
          .filter(name => !described.has(name))
          .map(name => name.replace(/\{.*\}/, stage.of.applicationId))
        client.subscribe('platform', 'metrics:host', 'requests:all', ...unlisted, 'nowhere')
        for (const name of [...unlisted, 'nowhere']) await client.refusal(name)
        if (isAdmin) await client.next(({ channel }) => channel === 'metrics:host', 'the machine')
        else for (const name of ['metrics:host', 'requests:all']) await client.refusal(name)
        const { status } = await stage.act(who, 'GET', '/api/metrics/host')
        t.equal(status === 200, isAdmin && client.on('metrics:host')[0]?.event === 'metrics')
        t.equal((await stage.act(who, 'GET', '/api/requests')).status === 200, isAdmin)
        t.equal(client.on('requests:all').length === 0, isAdmin)
        t.same(client.on('platform'), [], 'nobody is refused')
        await client.close()
      }
      const pinnedAdmin = await stage.connect(
        (await stage.makeToken(admin, 'read', [stage.of.projectId])).credential
      )
      pinnedAdmin.subscribe('requests:all')
      await pinnedAdmin.refusal('requests:all')
      t.same(
        contractChannels.filter(name => described.has(name) && !told.includes(name)),
        [],
        'a channel of the contract that a plugin has needs its claim here'
      )
    }
  }
]
