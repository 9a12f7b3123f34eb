import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { pack } from 'tar-stream'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { containersOf, type DeployLab, engine, openLab } from './deploy-lab.js'

const account = { username: 'deployer', password: 'pass-0123456789/+"ä' }
const credentials = { registry_username: account.username, registry_password: account.password }

/** An image application of the lab. */
async function imageApplication(lab: DeployLab, source_image: string, more: object = {}) {
  const admin = await lab.k.as.session()
  const all = `/api/projects/${lab.projectId}/applications`
  const made = await admin.post(all, {
    name: 'img',
    type: 'image',
    build_type: 'image',
    source_image,
    ...more
  })
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  const path = `${all}/${made.body.id as string}`
  const ended = async (id: string) => {
    let seen: any
    await until(
      async () => {
        seen = (await admin.get(`${path}/deployments/${id}`)).body
        return seen.finished_at !== null
      },
      'it has ended',
      60_000
    )
    return seen
  }
  return {
    id: made.body.id as string,
    path,
    ended,
    deploy: async () => await ended((await admin.post(`${path}/deploy`)).body.id),
    async remove() {
      await admin.delete(path)
      await until(async () => (await containersOf(made.body.id)).length === 0, 'its containers are gone')
    }
  }
}

/** Makes an image that lives and says `version`, and pushes it. */
async function pushVersion(t: Test, name: string, version: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-image-'))
  await writeFile(
    join(directory, 'Dockerfile'),
    `FROM busybox:lab\nENV VERSION=${version}\nCMD ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"]\n`
  )
  const follow = async (stream: NodeJS.ReadableStream) =>
    await new Promise<void>((resolve, reject) =>
      engine.modem.followProgress(stream, error => (error === null ? resolve() : reject(error)))
    )
  await follow(await engine.buildImage({ context: directory, src: ['Dockerfile'] }, { t: name }))
  await follow(
    await engine.getImage(name).push({ authconfig: { ...account, serveraddress: name.split('/')[0] ?? '' } })
  )
  await engine.getImage(name).remove({ force: true })
  await rm(directory, { recursive: true })
  t.teardown(async () => {
    for (const { Id, RepoTags, RepoDigests } of await engine.listImages()) {
      const repository = name.replace(/:[^:/]*$/, '')
      if ([...(RepoTags ?? []), ...(RepoDigests ?? [])].some(one => one.startsWith(repository)))
        await engine
          .getImage(Id)
          .remove({ force: true })
          .catch(() => undefined)
    }
  })
}

/** Tables that hold `text` in any row. */
async function tablesWith(lab: DeployLab, text: string): Promise<string[]> {
  const tables = await lab.k.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`
  )
  const found: string[] = []
  for (const { name } of tables) {
    const rows = await lab.k.query(`select 1 from ${name} as t where position($1 in t::text) > 0 limit 1`, [
      text
    ])
    if (rows.length > 0) found.push(name)
  }
  return found
}

test("an image of a private registry is pulled with the application's account, pinned, and rolled back to", async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const registry = await startDockerRegistry(t, { account })
  const lines: string[] = []
  const lab = await openLab({ onLog: line => lines.push(line) })
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const name = `${registry.host}/team/app:latest`
  await pushVersion(t, name, 'one')
  const web = await imageApplication(lab, name)

  const asNobody = await web.deploy()
  t.match(asNobody, {
    status: 'failed',
    step: 'prepare-image',
    image_tag: null,
    error_message: /does not hand out .* to everybody.*set registry_username and registry_password/
  })
  t.equal((await admin.get(web.path)).body.status, 'error')

  await admin.put(web.path, { ...credentials, registry_password: 'wrong-0123456789' })
  t.match(await web.deploy(), {
    status: 'failed',
    error_message: /refused the user name deployer and its password/
  })

  await admin.put(web.path, credentials)
  const one = await web.deploy()
  t.match(one, {
    status: 'success',
    error_message: null,
    image_tag: new RegExp(`^${registry.host}/team/app@sha256:[0-9a-f]{64}$`)
  })
  t.match(
    one.build_logs,
    new RegExp(`Pulling ${name} as deployer[^]*Using ${registry.host}/team/app@sha256:`)
  )
  t.match((await admin.get(web.path)).body, {
    status: 'running',
    last_deployed_at: one.finished_at,
    pending_change: ''
  })

  await pushVersion(t, name, 'two')
  const two = await web.deploy()
  t.match(two, { status: 'success', image_tag: /@sha256:/ })
  t.not(two.image_tag, one.image_tag, 'the tag has moved')

  await admin.put(web.path, { registry_password: null })
  const rolled = await web.ended(
    (await admin.post(`${web.path}/rollback`, { deployment_id: one.id })).body.id
  )
  t.match(rolled, { status: 'success', image_tag: one.image_tag }, 'what is on the machine needs no account')
  await until(async () => (await containersOf(web.id)).length === 1, 'the other version is gone')
  const [running] = await containersOf(web.id)
  t.ok((await engine.getContainer(running?.Id ?? '').inspect()).Config.Env.includes('VERSION=one'))
  t.match(await web.deploy(), { status: 'failed', error_message: /does not hand out/ })
  t.equal((await admin.get(web.path)).body.status, 'running', 'and what serves goes on')

  for (const secret of [
    account.password,
    JSON.stringify(account.password).slice(1, -1),
    'wrong-0123456789',
    Buffer.from(account.password).toString('base64').slice(0, 20)
  ]) {
    t.notOk(
      lines.some(line => line.includes(secret)),
      'no log line holds the password'
    )
    t.same(await tablesWith(lab, secret), [], 'neither does a row')
  }
  await web.remove()
})

test("what one application's account was needed for is no source for another, with or without its registry", async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const registry = await startDockerRegistry(t, { account })
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const name = `${registry.host}/team/secret:1`
  await pushVersion(t, name, 'secret')
  const owner = await imageApplication(lab, name, credentials)
  const pulled = await owner.deploy()
  t.match(pulled, { status: 'success' })

  const stranger = await imageApplication(lab, name)
  const from = await lab.application('from', { Dockerfile: `FROM ${name}\n` })
  const copy = await lab.application('copy', {
    Dockerfile: `FROM busybox:lab\nCOPY --from=${pulled.image_tag as string} /bin/busybox /stolen\n`
  })
  for (const app of [from, copy])
    t.match(await app.deployed(), { status: 'failed', error_message: /does not hand out .* to everybody/ })
  const built = await lab.application(
    'built',
    { Dockerfile: 'FROM busybox:lab\nCMD ["sh", "-c", "while true; do sleep 0.1; done"]\n' },
    { container_port: null }
  )
  const one = await built.deployed()
  t.match(one, { status: 'success', error_message: null })
  await from.push({ Dockerfile: `FROM ${one.image_tag as string}\n` })
  t.match(await from.deployed(), { status: 'failed', error_message: /was built for another application/ })

  await registry.close()
  t.match(await stranger.deploy(), { status: 'failed', error_message: /could not be reached to pull/ })
  await from.push({ Dockerfile: `ARG WHICH=${name}\nFROM $WHICH\n` })
  t.match(await from.deployed(), { status: 'failed', error_message: /could not be reached to pull/ })
  const again = await owner.deploy()
  t.match(
    again,
    { status: 'success', error_message: null, image_tag: pulled.image_tag },
    'its own it may use'
  )
  t.match(again.build_logs, /is used as it is/)
  for (const app of [owner, stranger]) await app.remove()
})

test('images that were pulled and that no rollback reaches any more are removed', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const registry = await startDockerRegistry(t)
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const architecture = (await engine.version()).Arch
  const name = `${registry.host}/team/many:latest`
  const web = await imageApplication(lab, name)
  const shared = await imageApplication(lab, name)
  const build = async (path: string, ended: typeof web.ended) =>
    await ended((await admin.post(`${path}/build`)).body.id)
  const layers: string[] = []
  for (let version = 0; version < 13; version++) {
    const layer = await tarOf('version', String(version))
    layers.push(`sha256:${createHash('sha256').update(layer).digest('hex')}`)
    await registry.push('team/many', 'latest', { architecture, layer, command: ['/version'] })
    const { image_tag: pulled } = await build(web.path, web.ended)
    t.match(pulled, new RegExp(`^${registry.host}/team/many@sha256:`))
    if (version === 0) t.equal((await build(shared.path, shared.ended)).image_tag, pulled)
  }
  const there = async (): Promise<ReadonlySet<string>> => {
    const held = await Promise.all(
      (await engine.listImages()).map(
        async ({ Id }) =>
          await engine
            .getImage(Id)
            .inspect()
            .catch(() => undefined)
      )
    )
    return new Set(held.flatMap(image => image?.RootFS.Layers ?? []))
  }
  const all = await there()
  t.same(
    layers.filter(layer => !all.has(layer)),
    []
  )
  // As if all had been pulled a while ago.
  await lab.k.query("update builds.fetched_image set keep_until = now() - interval '1 hour'")
  await lab.k.query("update builds.preparation set claimed_until = now() - interval '1 hour'")
  t.match(await web.deploy(), { status: 'failed' }, 'it cannot run, and is cleaned up')
  await until(async () => {
    const left = await there()
    return !left.has(layers[1] ?? '') && !left.has(layers[2] ?? '')
  }, 'two are out of reach')
  const left = await there()
  t.equal(left.has(layers[0] ?? ''), true, 'another application can go back to this one')
  t.same(
    layers.slice(3).filter(layer => !left.has(layer)),
    [],
    'the newest ten stay'
  )
  await web.remove()
  await shared.remove()
})

/** A layer with one file. */
async function tarOf(file: string, content: string): Promise<Buffer> {
  const tar = pack()
  tar.entry({ name: file, mode: 0o755 }, Buffer.from(content))
  tar.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of tar) chunks.push(Buffer.from(chunk as Buffer))
  return Buffer.concat(chunks)
}

test('an image for another kind of machine fails with that as the reason', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const registry = await startDockerRegistry(t)
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const other = (await engine.version()).Arch === 'arm64' ? 'amd64' : 'arm64'
  await registry.push('team/other', '1', {
    architecture: other,
    layer: await tarOf('app', 'no program of this machine'),
    command: ['/app']
  })
  const name = `${registry.host}/team/other:1`
  t.teardown(
    async () =>
      await engine
        .getImage(name)
        .remove({ force: true })
        .catch(() => undefined)
  )
  const web = await imageApplication(lab, name)
  const ended = await web.deploy()
  t.match(ended, {
    status: 'failed',
    error_message: new RegExp(`its image is made for linux/${other}, not for this machine`)
  })
  t.match(ended.build_logs, new RegExp(`made for linux/${other}`))
  await web.remove()
})

test('a pull that does not end is ended by a cancel, and by its time limit', async t => {
  if (!(await requireEngine(t))) return
  let asked = 0
  const mute = createServer((request, response) => {
    if (request.url === '/v2/') {
      response.writeHead(200, { 'docker-distribution-api-version': 'registry/2.0' }).end('{}')
      return
    }
    asked++
  })
  await new Promise<void>(resolve => mute.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    mute.closeAllConnections()
    mute.close()
  })
  const name = `127.0.0.1:${(mute.address() as AddressInfo).port}/team/app:1`
  const lab = await openLab({ environment: { IMAGE_PULL_TIMEOUT_MINUTES: '0.1' } })
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const web = await imageApplication(lab, name)

  const limited = await web.deploy()
  t.match(limited, {
    status: 'failed',
    error_message: /the pull of .* was stopped after 0\.1 minutes, the limit of IMAGE_PULL_TIMEOUT_MINUTES/
  })

  const before = asked
  const { body: begun } = await admin.post(`${web.path}/deploy`)
  await until(() => asked > before, 'the registry is asked')
  t.equal((await admin.post(`${web.path}/deployments/${begun.id as string}/cancel`)).status, 202)
  t.match(await web.ended(begun.id), { status: 'failed', error_message: 'cancelled', image_tag: null })
  await web.remove()
})
