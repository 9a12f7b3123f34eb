import { randomUUID } from 'node:crypto'
import {
  applicationAddresses,
  applicationDeployHealth,
  applicationGates,
  applicationGitIntegrations,
  applicationRegistry
} from 'busbar/api/applications'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestClient } from 'busbar/sdk/testing'
import { test } from 'tap'

const gitApplication = {
  name: 'Web Front',
  type: 'git',
  build_type: 'dockerfile',
  source_repo: 'https://git.example.com/a/b.git'
}
const imageApplication = { name: 'cache', type: 'image', build_type: 'image', source_image: 'busybox:lab' }

/** Contributes what other plugins say about applications. */
const neighbours = () => {
  const said = {
    refusal: null as string | null,
    urls: new Map<string, string>(),
    integrations: new Map<string, string>(),
    health: null as never
  }
  const definition = definePlugin({
    id: 'neighbours',
    contributes: contribute => {
      contribute(applicationGates, 'neighbours', { refuses: async () => said.refusal })
      contribute(applicationAddresses, 'neighbours', { directUrl: id => said.urls.get(id) ?? null })
      contribute(applicationGitIntegrations, 'neighbours', {
        mayUse: async (id, userId) => said.integrations.get(id) === userId
      })
      contribute(applicationDeployHealth, 'neighbours', { latest: async () => said.health })
    }
  })
  return {
    said,
    plugin: { manifest: { id: 'neighbours', requires: { applications: '^0.1.0' } }, definition }
  }
}

test('applications over HTTP', async t => {
  const { said, plugin } = neighbours()
  // No engine answers: one that did would find that what was "deployed" here has no container.
  const environment = { DOCKER_HOST: 'unix:///nowhere/docker.sock' }
  const k = await createTestKernel({ inline: [plugin], environment })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const ann = await k.as.session('ann')
  const bob = await k.as.session('bob')
  const token = await k.as.token('write', { user: 'ann' })
  const { body: project } = await ann.post('/api/projects', { name: 'Acme', slug: 'acme' })
  const all = `/api/projects/${project.id}/applications`
  const create = async (body: object, client: TestClient = ann) => {
    const answer = await client.post(all, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return { ...answer.body, path: `${all}/${answer.body.id}` }
  }
  /** As deployments record a success that began at `startedAt`. */
  const deployed = async (id: string, startedAt: Date, rebuilt = true) => {
    await k.transaction(async tx => {
      await k
        .service(applicationRegistry)
        .recordDeployed(id, { deploymentId: randomUUID(), startedAt, finishedAt: new Date(), rebuilt }, tx)
    })
  }
  const soon = () => new Date(Date.now() + 50)

  await t.test(
    'a git application has every field of the contract, defaults where nothing was said',
    async t => {
      const { path, ...made } = await create({
        ...gitApplication,
        branch: 'main',
        git_token: 'ghp_secret',
        unknown: 1
      })
      t.match(made, {
        project_id: project.id,
        type: 'git',
        status: 'inactive',
        build_type: 'dockerfile',
        build_target: null,
        build_platform: null,
        branch: 'main',
        auto_deploy_branch: 'main',
        has_git_credentials: true,
        has_webhook_secret: true,
        deploy_hook_enabled: false,
        container_caps: 'minimal',
        readonly_rootfs: true,
        cpu_limit: 0,
        memory_limit: 0,
        container_port: null,
        health_check_type: 'http',
        health_check_path: null,
        pending_change: '',
        custom_buildpacks: '[]',
        start_command: null,
        direct_url: null,
        last_deployed_at: null,
        config_changed_at: null
      })
      t.equal(made.slug, `acme-web-front-${made.id.slice(0, 8)}`)
      t.equal(Object.keys(made).length, 51)
      t.notMatch(JSON.stringify(made), 'ghp_secret')
      t.notOk('git_token' in made || 'webhook_secret' in made || 'unknown' in made)
      t.same((await token.get(path)).body, made)
    }
  )

  await t.test('an image application, with port, limits and check given at once', async t => {
    const made = await create({
      ...imageApplication,
      slug: 'My Cache',
      container_port: 6379,
      cpu_limit: 0.5,
      memory_limit: 268_435_456,
      health_check_path: '/up'
    })
    t.match(made, {
      source_image: 'busybox:lab',
      source_repo: null,
      container_port: 6379,
      cpu_limit: 0.5,
      memory_limit: 268_435_456,
      health_check_path: '/up'
    })
    t.match(made.slug, /^acme-my-cache-/)
  })

  await t.test('what does not fit is refused by the name of the field', async t => {
    const refused = async (body: object, field: string) => {
      const answer = await ann.post(all, body)
      t.equal(answer.status, 400, `${field}: ${JSON.stringify(answer.body)}`)
      t.match(answer.body.error, field)
    }
    const { name: _, ...nameless } = gitApplication
    await refused(nameless, 'name')
    await refused({ ...gitApplication, type: 'svn' }, 'type')
    await refused({ ...gitApplication, build_type: 'make' }, 'build_type')
    await refused({ ...gitApplication, build_type: 'image' }, 'build_type')
    await refused({ ...gitApplication, source_repo: undefined }, 'source_repo')
    await refused({ ...gitApplication, source_image: 'x' }, 'source_image')
    await refused({ ...gitApplication, branch: '--x' }, 'invalid branch name')
    await refused({ ...gitApplication, container_port: 0 }, 'container_port')
    await refused({ ...gitApplication, cpu_limit: -1 }, 'cpu_limit')
    await refused({ ...gitApplication, memory_limit: 1.5 }, 'memory_limit')
    await refused({ ...gitApplication, name: null }, 'name')
    await refused({ ...gitApplication, health_check_path: 'up' }, 'health_check_path')
    await refused({ ...gitApplication, health_check_path: '/größe' }, '/gr%C3%B6%C3%9Fe')
    await refused({ ...gitApplication, git_integration_id: randomUUID() }, 'git_integration_id')
    await refused({ ...gitApplication, git_integration_id: 'x' }, 'git_integration_id')
    await refused({ ...imageApplication, source_image: '' }, 'source_image')
    await refused({ ...imageApplication, source_repo: 'https://x.example.com/a' }, 'source_repo')
    await refused({ ...imageApplication, dockerfile_path: 'Dockerfile' }, 'dockerfile_path')
  })

  await t.test('the list is newest first, counts, and shows direct addresses', async t => {
    const first = await create(gitApplication)
    const second = await create(imageApplication)
    said.urls.set(second.id, 'http://127.0.0.2:7000')
    const answer = await token.get(all)
    t.same(
      answer.body.slice(0, 2).map((row: { id: string }) => row.id),
      [second.id, first.id]
    )
    t.same(
      answer.body.slice(0, 2).map((row: { direct_url: string }) => row.direct_url),
      ['http://127.0.0.2:7000', null]
    )
    t.equal(answer.headers['x-total-count'], String(answer.body.length))
    const page = await token.get(`${all}?limit=1&offset=1`)
    t.match(page, { body: [{ id: first.id }], headers: { 'x-total-count': String(answer.body.length) } })
  })

  await t.test(
    'an update keeps what is absent, clears what is null or empty, and ignores what has its own operation',
    async t => {
      const { path } = await create({
        ...gitApplication,
        branch: 'main',
        dockerfile_path: 'a/Dockerfile',
        container_port: 80
      })
      t.match(
        (
          await ann.put(path, {
            name: 'New',
            cpu_limit: 9,
            memory_limit: 9,
            health_check_path: '/x',
            type: 'image',
            slug: 'x'
          })
        ).body,
        {
          name: 'New',
          branch: 'main',
          dockerfile_path: 'a/Dockerfile',
          container_port: 80,
          cpu_limit: 0,
          memory_limit: 0,
          health_check_path: null,
          type: 'git',
          pending_change: ''
        }
      )
      t.match((await ann.put(path, { branch: null, dockerfile_path: '', container_port: null })).body, {
        branch: null,
        dockerfile_path: null,
        container_port: null,
        auto_deploy_branch: 'main'
      })
      t.match(
        (
          await ann.put(path, {
            custom_buildpacks: '["a/b"]',
            builder_image: 'heroku/builder:24',
            build_type_override: 'buildpacks'
          })
        ).body,
        {
          custom_buildpacks: '["a/b"]',
          builder_image: 'heroku/builder:24',
          build_type_override: 'buildpacks'
        }
      )
      t.match(await ann.put(path, { source_repo: null }), { status: 400, body: { error: /source_repo/ } })
    }
  )

  await t.test('a stored git token goes to no other host', async t => {
    const { path } = await create({ ...gitApplication, git_token: 'ghp_secret' })
    const moved = 'https://elsewhere.example.com/a.git'
    t.match(await token.put(path, { source_repo: moved }), {
      status: 400,
      body: { code: 'E_APPLICATION_TOKEN_NEEDED', error: /git_token.*git\.example\.com.*elsewhere/ }
    })
    t.match((await token.get(path)).body, { source_repo: gitApplication.source_repo })
    t.match(await token.put(path, { source_repo: 'https://git.example.com/other.git', git_token: '' }), {
      status: 200,
      body: { has_git_credentials: true }
    })
    t.match(await token.put(path, { source_repo: moved, git_token: null }), {
      status: 200,
      body: { has_git_credentials: false, source_repo: moved }
    })
    t.match(await token.put(path, { source_repo: gitApplication.source_repo, git_token: 'new' }), {
      status: 200,
      body: { has_git_credentials: true }
    })
  })

  await t.test('the account of a registry is stored, never shown, and goes to no other registry', async t => {
    const password = 'registry-pass-4711'
    const made = await create({
      ...imageApplication,
      source_image: 'ghcr.io/team/app:1',
      registry_username: ' deployer ',
      registry_password: password
    })
    const { path } = made
    t.match(made, { registry_username: 'deployer', has_registry_credentials: true })
    t.notMatch(JSON.stringify(made), password)
    const stored = async () => (await k.service(applicationRegistry).deployable(made.id))?.source
    t.same(await stored(), {
      type: 'image',
      image: 'ghcr.io/team/app:1',
      registry: { username: 'deployer', password }
    })
    const [row] = await k.query<{ registry_password: string }>(
      'select registry_password from applications.application where id = $1',
      [made.id]
    )
    t.notMatch(row?.registry_password, password)

    for (const registry_password of ['', undefined]) {
      const moved = await token.put(path, { source_image: 'evil.example.com/team/app:1', registry_password })
      t.match(moved, {
        status: 400,
        body: {
          code: 'E_APPLICATION_CREDENTIALS_NEEDED',
          error: /registry_password.*ghcr\.io to evil\.example\.com/
        }
      })
    }
    t.equal(
      (await token.put(path, { source_image: 'team/app' })).status,
      400,
      'docker.io is another registry'
    )
    t.match((await token.get(path)).body, { source_image: 'ghcr.io/team/app:1' })
    t.match((await token.put(path, { source_image: 'GHCR.IO/team/other:2', registry_password: '' })).body, {
      source_image: 'GHCR.IO/team/other:2',
      has_registry_credentials: true
    })
    t.match((await token.put(path, { registry_username: 'reader' })).body, {
      registry_username: 'reader',
      has_registry_credentials: true
    })
    t.match(await stored(), { registry: { username: 'reader', password } })
    await token.put(path, { source_image: 'quay.io/a/b:1', registry_password: 'fresh one' })
    t.match(await stored(), {
      image: 'quay.io/a/b:1',
      registry: { username: 'reader', password: 'fresh one' }
    })
    t.match((await token.put(path, { source_image: 'evil.example.com/a', registry_password: null })).body, {
      registry_username: null,
      has_registry_credentials: false
    })
    t.same(await stored(), { type: 'image', image: 'evil.example.com/a' })
  })

  await t.test('user name and password of a registry come and go together, and belong to images', async t => {
    const refused = async (body: object, field: string) => {
      const answer = await ann.post(all, body)
      t.match(answer, { status: 400, body: { error: new RegExp(field) } }, JSON.stringify(answer.body))
    }
    await refused({ ...imageApplication, registry_username: 'a' }, 'registry_password is needed')
    await refused({ ...imageApplication, registry_password: 'a' }, 'registry_username is needed')
    await refused(
      { ...imageApplication, registry_username: 'a:b', registry_password: 'c' },
      'registry_username'
    )
    await refused({ ...imageApplication, registry_username: 5, registry_password: 'c' }, 'registry_username')
    await refused({ ...gitApplication, registry_username: 'a', registry_password: 'b' }, 'registry_username')
    await refused({ ...gitApplication, registry_password: 'b' }, 'registry_password')
    const { path } = await create({
      ...imageApplication,
      registry_username: 'a',
      registry_password: 'line one\nline two'
    })
    t.match(await ann.put(path, { registry_username: null, registry_password: 'x' }), {
      status: 400,
      body: { error: /registry_username/ }
    })
    t.match((await ann.put(path, { registry_username: '', registry_password: '' })).body, {
      registry_username: null,
      has_registry_credentials: false
    })
    const { path: git } = await create(gitApplication)
    t.match(await ann.put(git, { registry_username: 'a', registry_password: 'b' }), {
      status: 400,
      body: { error: /registry_username/ }
    })
    t.match(await ann.put(git, { registry_username: '', registry_password: null }), {
      status: 200,
      body: { registry_username: null, has_registry_credentials: false }
    })
  })

  await t.test('a changed source takes no account of the old registry along', async t => {
    const account = { registry_username: 'a', registry_password: 'b' }
    const { path } = await create({ ...imageApplication, ...account })
    t.match(
      (await ann.post(`${path}/change-source`, { type: 'git', source_repo: gitApplication.source_repo }))
        .body,
      { registry_username: null, has_registry_credentials: false }
    )
    t.match(
      (await ann.post(`${path}/change-source`, { type: 'image', source_image: 'evil.example.com/a' })).body,
      { registry_username: null, has_registry_credentials: false }
    )
    await ann.post(`${path}/change-source`, { type: 'git', source_repo: gitApplication.source_repo })
    t.match(
      (await ann.post(`${path}/change-source`, { type: 'image', source_image: 'quay.io/a', ...account }))
        .body,
      { registry_username: 'a', has_registry_credentials: true }
    )
  })

  await t.test('a deploy reads everything in clear', async t => {
    const { id } = await create({
      ...gitApplication,
      git_token: 'ghp_secret',
      root_directory: 'web',
      cpu_limit: 1
    })
    t.match(await k.service(applicationRegistry).deployable(id), {
      projectId: project.id,
      projectSlug: 'acme',
      containerDeploymentId: null,
      buildType: 'dockerfile',
      cpuLimit: 1,
      customBuildpacks: [],
      source: {
        type: 'git',
        repo: gitApplication.source_repo,
        branch: null,
        token: 'ghp_secret',
        rootDirectory: 'web',
        dockerfilePath: 'Dockerfile'
      },
      healthCheck: { type: 'none' }
    })
    const [row] = await k.query<{ git_token: string }>(
      'select git_token from applications.application where id = $1',
      [id]
    )
    t.notMatch(row?.git_token, 'ghp_secret')
    t.equal(await k.service(applicationRegistry).deployable(randomUUID()), undefined)
  })

  await t.test('a git integration is taken from those who may use it', async t => {
    const integration = randomUUID()
    said.integrations.set(integration, ann.userId ?? '')
    t.equal((await ann.post(all, { ...gitApplication, git_integration_id: integration })).status, 201)
    t.match(await admin.post(all, { ...gitApplication, git_integration_id: integration }), {
      status: 400,
      body: { error: /git_integration_id/ }
    })
    const { path } = await create({ ...gitApplication, git_integration_id: integration })
    t.equal((await ann.put(path, { name: 'x' })).body.git_integration_id, integration)
    t.equal((await ann.put(path, { git_integration_id: '' })).body.git_integration_id, null)
  })

  await t.test('changes wait to be applied once there was a deploy, source before config', async t => {
    const { path, id } = await create(gitApplication)
    t.equal((await ann.put(path, { branch: 'next' })).body.pending_change, '')
    await deployed(id, soon())
    t.match((await ann.get(path)).body, { pending_change: '', source_changed_at: null, status: 'running' })
    t.match((await ann.put(`${path}/resources`, { cpu_limit: 0.5 })).body, {
      pending_change: 'config',
      cpu_limit: 0.5,
      memory_limit: 0
    })
    t.equal((await ann.put(path, { branch: 'other' })).body.pending_change, 'source')
    await deployed(id, soon(), false)
    t.match(
      (await ann.get(path)).body,
      { pending_change: 'source', config_changed_at: null },
      'a reload applies the configuration alone'
    )
    const before = new Date(Date.now() - 60_000)
    await deployed(id, before)
    t.equal((await ann.get(path)).body.pending_change, 'source', 'changed after that deploy began')
    await deployed(id, soon())
    t.equal((await ann.get(path)).body.pending_change, '')
    t.equal((await ann.put(path, { name: 'only a name' })).body.pending_change, '')
  })

  await t.test('a success shows in the list of projects', async t => {
    const { id } = await create(gitApplication)
    await deployed(id, soon())
    const { body } = await ann.get('/api/projects')
    t.match(
      body.find((row: { id: string }) => row.id === project.id),
      { last_deployed_at: /^20/ }
    )
  })

  await t.test('health check, resources and runtime are set by their own operations', async t => {
    const { path } = await create(gitApplication)
    t.match(
      (
        await ann.put(`${path}/health-check`, {
          type: 'command',
          command: 'true',
          interval_seconds: 5,
          retries: 0
        })
      ).body,
      {
        health_check_type: 'command',
        health_check_command: 'true',
        health_check_interval_seconds: 5,
        health_check_retries: null,
        health_check_path: null
      }
    )
    t.match((await ann.put(`${path}/health-check`, { type: 'http', path: '/up', expect_status: 204 })).body, {
      health_check_type: 'http',
      health_check_command: null,
      health_check_expect_status: 204
    })
    t.match(await ann.put(`${path}/health-check`, { path: '/up' }), { status: 400, body: { error: /type/ } })
    t.match(await ann.put(`${path}/health-check`, { type: 'http', path: 'up' }), {
      status: 400,
      body: { error: /path/ }
    })
    t.match(await ann.put(`${path}/resources`, { memory_limit: -1 }), {
      status: 400,
      body: { error: /memory_limit/ }
    })
    t.same((await ann.put(`${path}/runtime`, { readonly_rootfs: false })).body, {
      container_caps: 'minimal',
      readonly_rootfs: false
    })
    t.same((await ann.put(`${path}/runtime`, { container_caps: 'standard' })).body, {
      container_caps: 'standard',
      readonly_rootfs: false
    })
    t.match(await ann.put(`${path}/runtime`, { container_caps: 'all' }), {
      status: 400,
      body: { error: /container_caps/ }
    })
  })

  await t.test('the health of an application is that of its latest deployment', async t => {
    const { path } = await create(gitApplication)
    t.match((await token.get(`${path}/health`)).body, {
      deployment_id: null,
      status: 'pending',
      message: 'not deployed yet'
    })
    const latest = {
      deployment_id: randomUUID(),
      deploy_status: 'success',
      status: 'passing',
      message: '200',
      checked_at: '2030-01-01T00:00:00.000Z'
    }
    said.health = latest as never
    t.same((await token.get(`${path}/health`)).body, latest)
  })

  await t.test(
    'the webhook secret is shown to a session alone, kept by null and cleared by an empty one',
    async t => {
      const { path } = await create(gitApplication)
      t.match((await ann.get(`${path}/webhook/reveal`)).body, { webhook_secret: /^[0-9a-f]{64}$/ })
      t.equal((await token.get(`${path}/webhook/reveal`)).status, 403)
      t.match((await token.put(`${path}/webhook`, { webhook_secret: 'mine', auto_deploy_branch: '' })).body, {
        has_webhook_secret: true,
        auto_deploy_branch: 'main'
      })
      await token.put(`${path}/webhook`, { webhook_secret: null, auto_deploy_branch: 'release' })
      t.match((await ann.get(`${path}/webhook/reveal`)).body, { webhook_secret: 'mine' })
      t.match((await token.put(`${path}/webhook`, { webhook_secret: '' })).body, {
        has_webhook_secret: false,
        auto_deploy_branch: 'release'
      })
      t.match(await ann.get(`${path}/webhook/reveal`), {
        status: 404,
        body: { code: 'E_APPLICATION_NO_WEBHOOK_SECRET' }
      })
      const [record] = await k.query<{ action: string }>(
        `select * from kernel.audit_log where action = 'reveal_webhook_secret' limit 1`
      )
      t.match(record, { resource_type: 'application' })
    }
  )

  await t.test('a source changes to the other type and leaves nothing of the old one', async t => {
    const { path, id } = await create({
      ...gitApplication,
      branch: 'main',
      git_token: 'x',
      dockerfile_path: 'D',
      container_port: 80,
      cpu_limit: 1
    })
    await deployed(id, soon())
    t.match(
      await ann.post(`${path}/change-source`, { type: 'git', source_repo: 'https://x.example.com/a' }),
      { status: 400, body: { code: 'E_APPLICATION_SAME_TYPE' } }
    )
    t.match(await ann.post(`${path}/change-source`, { type: 'image' }), {
      status: 400,
      body: { error: /source_image/ }
    })
    t.match((await ann.post(`${path}/change-source`, { type: 'image', source_image: 'busybox:lab' })).body, {
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab',
      source_repo: null,
      branch: null,
      auto_deploy_branch: null,
      dockerfile_path: null,
      has_git_credentials: false,
      has_webhook_secret: false,
      container_port: 80,
      cpu_limit: 1,
      pending_change: 'source'
    })
    t.match(await ann.put(path, { build_type_override: 'railpack' }), {
      status: 400,
      body: { error: /build_type_override/ }
    })
    t.match(
      (await ann.post(`${path}/change-source`, { type: 'git', source_repo: 'https://x.example.com/a' })).body,
      {
        type: 'git',
        build_type: 'railpack',
        source_image: null,
        has_webhook_secret: true,
        has_git_credentials: false
      }
    )
    said.refusal = 'a deployment is already in progress for this application'
    t.match(await ann.post(`${path}/change-source`, { type: 'image', source_image: 'busybox:lab' }), {
      status: 409,
      body: { error: said.refusal, code: 'E_APPLICATION_BUSY' }
    })
    t.match(
      await ann.post(`${path}/change-source`, { type: 'image' }),
      { status: 400, body: { error: /source_image/ } },
      'a fault of the request comes first'
    )
    t.match(
      await ann.post(`${path}/change-source`, { type: 'git', source_repo: 'https://x.example.com/a' }),
      { status: 400, body: { code: 'E_APPLICATION_SAME_TYPE' } }
    )
    said.refusal = null
  })

  await t.test('an application is found in its own project only, and by who sees that', async t => {
    const { id } = await create(gitApplication)
    const { body: other } = await ann.post('/api/projects', { name: 'o', slug: 'other' })
    t.equal((await ann.get(`/api/projects/${other.id}/applications/${id}`)).status, 404)
    t.equal((await ann.put(`/api/projects/${other.id}/applications/${id}`, { name: 'x' })).status, 404)
    t.equal((await bob.get(`${all}/${id}`)).status, 404)
    t.equal((await ann.get(`${all}/${randomUUID()}`)).status, 404)
    t.equal((await ann.get(`${all}/nonsense`)).status, 400)
    const pinned = await k.as.token('write', { user: 'ann', pins: [other.id] })
    t.equal((await pinned.get(`${all}/${id}`)).status, 403)
  })

  await t.test(
    'in a shared project a member changes applications, and only owner and admins delete them',
    async t => {
      const { id, path } = await create(gitApplication)
      await ann.put(`/api/projects/${project.id}/sharing`, { shared: true })
      t.equal((await bob.put(path, { name: 'by bob' })).status, 200)
      t.equal((await bob.delete(path)).status, 403)
      t.equal((await token.delete(path)).status, 403)
      t.match(await admin.delete(path), { status: 200, body: { status: 'deleted' } })
      t.equal((await ann.get(path)).status, 404)
      t.equal((await ann.delete(path)).status, 404)
      t.equal((await ann.put(path, { name: 'x' })).status, 404)
      t.notOk((await ann.get(all)).body.some((row: { id: string }) => row.id === id))
      await ann.put(`/api/projects/${project.id}/sharing`, { shared: false })
    }
  )
})
