import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { builders, imagePreparation } from 'busbar/api/builds'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { startGitServer } from '../../../lab/git-server.js'
import { requireSshServer, startSshServer } from '../../../lab/ssh-server.js'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { folder, recorder } from './kit.js'

engineTest('an application reads its repository by its deploy key, and knows its host', async t => {
  if (!(await requireSshServer(t))) return
  const keys: (string | undefined)[] = []
  const addition = definePlugin({
    id: 'addition',
    contributes(contribute) {
      contribute(builders, 'custom', {
        async build({ sshKey }) {
          keys.push(sshKey)
          return { id: 'sha256:x', repoDigests: [], exposedPorts: [], sizeBytes: 0 }
        }
      })
    }
  })
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'addition', requires: { builds: '^0.1.0' } }, definition: addition }]
  })
  t.teardown(async () => await k.close())
  const root = join(await folder(t), 'repositories')
  const repositories = await startGitServer({ root })
  t.teardown(async () => await repositories.close())
  await repositories.createRepository('app', { 'a.txt': 'one' })
  const server = await startSshServer(t)
  const repo = `ssh://${server.user}@127.0.0.1:${server.port}${root}/app.git`

  const admin = await k.as.session()
  const projectId = (await admin.post('/api/projects', { name: 'x', slug: 'x' })).body.id as string
  const created = await admin.post(`/api/projects/${projectId}/applications`, {
    name: 'web',
    type: 'git',
    build_type: 'custom',
    source_repo: repo
  })
  t.equal(created.status, 201, JSON.stringify(created.body))
  const applicationId = created.body.id as string
  const path = `/api/projects/${projectId}/applications/${applicationId}`
  const logs: string[] = []
  const prepare = async (): Promise<void> => {
    const context = recorder()
    try {
      await k.service(imagePreparation).prepare(
        {
          applicationId,
          deploymentId: randomUUID(),
          projectId,
          slug: 'x-web',
          source: { type: 'git', repo, branch: null, token: null, rootDirectory: '', dockerfilePath: '' },
          buildType: 'custom',
          builderImage: null,
          customBuildpacks: [],
          variables: []
        },
        { ...context, onCommit: async () => {} }
      )
    } finally {
      logs.push(context.text())
    }
  }

  await t.rejects(prepare(), { code: 'E_SOURCE_NO_KEY' })
  const { public_key } = (await admin.post(`${path}/deploy-key`)).body as { readonly public_key: string }
  await t.rejects(prepare(), { code: 'E_SOURCE_KEY_REFUSED' })
  await server.allow(public_key)
  await prepare()
  t.match(keys[0], /^-----BEGIN OPENSSH PRIVATE KEY-----\n/, 'a builder may use it for other repositories')
  const [known, ...others] = (await admin.get(`${path}/host-keys`)).body
  t.same(others, [])
  t.match(known, { host: `[127.0.0.1]:${server.port}`, key: await server.hostKey(), fingerprint: /^SHA256:/ })

  await server.changeHostKey()
  await t.rejects(prepare(), { code: 'E_SOURCE_HOST_KEY' })
  t.equal((await admin.delete(`${path}/host-keys`)).status, 200)
  t.same((await admin.get(`${path}/host-keys`)).body, [])
  await prepare()
  t.match((await admin.get(`${path}/host-keys`)).body, [{ key: await server.hostKey() }])
  t.notMatch(logs.join('\n'), /PRIVATE KEY|b3BlbnNzaC1rZXktdjE/)

  t.equal((await admin.delete(`${path}/deploy-key`)).status, 200)
  await t.rejects(prepare(), { code: 'E_SOURCE_NO_KEY' })
})
