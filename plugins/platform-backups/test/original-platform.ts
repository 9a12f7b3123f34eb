import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel, TestClient } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { archives, backUp, makeKey, runsOf } from './kit.js'

export const hello = new URL('../../../examples/plugins/hello/', import.meta.url)

/** An empty folder for another installation. */
export async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'busbar-restored-'))
  await chmod(made, 0o711)
  t.teardown(async () => {
    await rm(made, { recursive: true, force: true })
  })
  return made
}

/** An installation with something of everything in it, its archive, and what to look for. */
export async function original(t: Test) {
  const k = await createTestKernel({ plugins: [hello] })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { body: project } = await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
  const env = `/api/projects/${project.id as string}/env`
  await admin.put(env, { vars: [{ key: 'PASSWORD', value: 'correct horse', is_secret: true }] })
  const { body: application } = await admin.post(`/api/projects/${project.id as string}/applications`, {
    name: 'Web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab',
    container_port: 8080
  })
  const { body: token } = await admin.post('/api/tokens', { name: 'ci', scopes: ['write'] })
  await admin.post('/api/x/hello/greetings', { name: 'Ada' })
  await admin.put('/api/plugins/hello/config', { salutation: 'Ahoy' })
  const notes = join(k.state.directory, 'plugins', 'notes')
  await mkdir(join(notes, 'bin'), { recursive: true })
  await writeFile(join(notes, 'plugin.txt'), 'kept')
  await writeFile(join(notes, 'bin', 'run'), '#!/bin/sh\n', { mode: 0o755 })
  await symlink('../plugin.txt', join(notes, 'bin', 'link'))
  const key = await makeKey(admin)
  const run = await backUp(admin)
  if (run.status !== 'succeeded') throw new Error(String(run.error))
  const [file = ''] = await archives(k)
  const keyFile = join(k.state.directory, 'recovery.key')
  await writeFile(keyFile, `# a recovery key\n${key}\n`)
  return {
    k,
    file,
    key,
    keyFile,
    runId: run.id,
    env,
    token: token.token as string,
    projectId: project.id as string,
    applicationId: application.id as string,
    cookie: admin.credential,
    variableId: (await admin.get(env)).body[0].id as string,
    instanceId: await readFile(join(k.state.directory, 'data/runtime-docker/instance-id'), 'utf8').catch(
      () => ''
    )
  }
}

/** That everything is as it was, seen through the door. */
export async function looksAsBefore(
  t: Test,
  { env, token, projectId, applicationId, cookie, variableId, runId }: Awaited<ReturnType<typeof original>>,
  url: string
): Promise<void> {
  const byToken = new TestClient(url, { authorization: `Bearer ${token}` })
  t.match((await byToken.get('/api/auth/me')).body, { email: 'admin@example.com' }, 'tokens work')
  t.match((await byToken.get(`/api/projects/${projectId}`)).body, { name: 'Shop' })
  t.match((await byToken.get(`/api/projects/${projectId}/applications/${applicationId}`)).body, {
    name: 'Web'
  })
  const bySession = new TestClient(url, cookie)
  t.match(
    (await bySession.get(`${env}/${variableId}/reveal`)).body,
    { value: 'correct horse' },
    'what is sealed opens'
  )
  const login = await new TestClient(url).post('/api/auth/login', {
    email: 'admin@example.com',
    password: 'correct horse battery'
  })
  t.equal(login.status, 200, 'users log in')
  t.match(
    (await runsOf(byToken)).find(({ id }) => id === runId),
    { status: 'succeeded' },
    'the run that made the archive is over'
  )
}
