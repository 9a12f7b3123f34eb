import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { fingerprintOf, makeOpenSshKey, secretLines } from '../ssh/openssh-key.js'
import { folder } from './kit.js'

test('a key is one that OpenSSH reads, with the public line and the fingerprint that it tells of it', async t => {
  const { publicKey, privateKey, fingerprint } = makeOpenSshKey('busbar:shop')
  const path = join(await folder(t), 'key')
  await writeFile(path, privateKey, { mode: 0o600 })
  const keygen = (...argv: string[]) => execFileSync('ssh-keygen', argv).toString().trim()
  t.equal(keygen('-y', '-f', path), publicKey)
  t.equal(keygen('-l', '-f', path), `256 ${fingerprint} busbar:shop (ED25519)`)
  t.equal(fingerprintOf(publicKey.split(' ')[1] ?? ''), fingerprint)
  t.not(makeOpenSshKey('busbar:shop').publicKey, publicKey)
  const lines = secretLines(privateKey)
  t.ok(lines.length >= 4)
  t.equal(
    lines.some(line => publicKey.includes(line)),
    false,
    'to hide them does not hide the public key'
  )
})

async function platform(t: Test) {
  const k = await createTestKernel({ environment: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } })
  t.teardown(async () => await k.close())
  const admin = await k.as.session()
  const create = async (client = admin, name = randomUUID().slice(0, 8)) => {
    const project = (await client.post('/api/projects', { name, slug: name })).body.id as string
    const { body } = await client.post(`/api/projects/${project}/applications`, {
      name: 'web',
      type: 'git',
      build_type: 'dockerfile',
      source_repo: 'git@git.example.com:a/b.git'
    })
    return {
      project,
      id: body.id as string,
      slug: body.slug as string,
      path: `/api/projects/${project}/applications/${body.id as string}`
    }
  }
  return { k, admin, create }
}

test('an application has a deploy key of its own, of which nobody sees the private part', async t => {
  const { k, admin, create } = await platform(t)
  const { path, slug, id } = await create()
  t.match(await admin.get(`${path}/deploy-key`), { status: 404, body: { code: 'E_DEPLOY_KEY_MISSING' } })
  t.match(await admin.delete(`${path}/deploy-key`), { status: 404, body: { code: 'E_DEPLOY_KEY_MISSING' } })

  const made = await admin.post(`${path}/deploy-key`)
  t.equal(made.status, 200)
  t.same(Object.keys(made.body).sort(), ['created_at', 'fingerprint', 'public_key'])
  t.match(made.body, {
    public_key: new RegExp(`^ssh-ed25519 [A-Za-z0-9+/]{68} busbar:${slug}$`),
    fingerprint: /^SHA256:[A-Za-z0-9+/]{43}$/
  })
  t.same((await admin.get(`${path}/deploy-key`)).body, made.body)

  const replaced = await admin.post(`${path}/deploy-key`)
  t.not(replaced.body.fingerprint, made.body.fingerprint)
  t.same((await admin.get(`${path}/deploy-key`)).body, replaced.body)

  const stored = await k.query('select private_key from builds.deploy_key where application_id = $1', [id])
  t.equal(stored.length, 1)
  t.notMatch(JSON.stringify(stored), /PRIVATE KEY|b3BlbnNzaC/)

  t.equal((await admin.delete(`${path}/deploy-key`)).status, 200)
  t.equal((await admin.get(`${path}/deploy-key`)).status, 404)
})

test('a deploy key belongs to its project: members of others are told that there is none', async t => {
  const { k, admin, create } = await platform(t)
  const theirs = await create()
  t.equal((await admin.post(`${theirs.path}/deploy-key`)).status, 200)
  const before = (await admin.get(`${theirs.path}/deploy-key`)).body

  const member = await k.as.session('member')
  const own = await create(member)
  const routes = [
    ['get', 'deploy-key'],
    ['post', 'deploy-key'],
    ['delete', 'deploy-key'],
    ['get', 'host-keys'],
    ['delete', 'host-keys']
  ] as const
  for (const [method, name] of routes) {
    t.equal((await member[method](`${theirs.path}/${name}`)).status, 404, `${method} ${name}`)
    // The application of one project below the path of another.
    const mixed = `/api/projects/${own.project}/applications/${theirs.id}/${name}`
    t.equal((await member[method](mixed)).status, 404, `${method} ${mixed}`)
  }
  t.same((await admin.get(`${theirs.path}/deploy-key`)).body, before)

  const reader = await k.as.token('read')
  t.equal((await reader.get(`${theirs.path}/deploy-key`)).status, 200)
  for (const [method, name] of routes.filter(([method]) => method !== 'get'))
    t.equal(
      (await reader[method](`${theirs.path}/${name}`)).status,
      403,
      `${method} ${name} by a token to read`
    )
})

test('making, replacing and deleting a deploy key is in the audit log', async t => {
  const { admin, create } = await platform(t)
  const { path } = await create()
  await admin.post(`${path}/deploy-key`)
  await admin.post(`${path}/deploy-key`)
  await admin.delete(`${path}/deploy-key`)
  await admin.delete(`${path}/host-keys`)
  const log = await admin.get('/api/audit-logs')
  const actions = JSON.stringify(log.body)
  for (const action of ['create_deploy_key', 'replace_deploy_key', 'delete_deploy_key', 'forget_host_keys'])
    t.ok(actions.includes(`"${action}"`), action)
})

engineTest('a deploy key and the known hosts go with their application', async t => {
  const k = await createTestKernel()
  t.teardown(async () => await k.close())
  const admin = await k.as.session()
  const project = (await admin.post('/api/projects', { name: 'x', slug: 'x' })).body.id as string
  const all = `/api/projects/${project}/applications`
  const { id } = (
    await admin.post(all, {
      name: 'web',
      type: 'git',
      build_type: 'dockerfile',
      source_repo: 'git@git.example.com:a/b.git'
    })
  ).body as { id: string }
  t.equal((await admin.post(`${all}/${id}/deploy-key`)).status, 200)
  await k.query(
    "insert into builds.host_key values ($1, 'git.example.com', 'ssh-ed25519 AAAA', 'SHA256:x', now())",
    [id]
  )
  t.equal((await admin.delete(`${all}/${id}`)).status, 200)
  t.equal((await admin.post(`${all}/${id}/deploy-key`)).status, 404, 'none is made while it goes')
  await until(
    async () => (await k.query('select 1 from applications.application where id = $1', [id])).length === 0,
    'the application is gone',
    60_000
  )
  for (const table of ['deploy_key', 'host_key'])
    t.same(await k.query(`select 1 from builds.${table}`), [], table)
})
