import { randomUUID } from 'node:crypto'
import { containerRuntime } from 'busbar/api/containers'
import type { HappyCall, HappyCalls, HappyFixture, HappyFixtures } from 'busbar/sdk/testing'

const image = { type: 'image', build_type: 'image', source_image: 'busybox:lab' }
const account = { registry_username: 'deployer', registry_password: 'a password of the registry' }

async function create(
  { admin, ids, unique }: HappyFixture,
  more: object = {}
): Promise<{ applicationId: string; slug: string }> {
  const { body } = await admin.post(`/api/projects/${ids.projectId ?? ''}/applications`, {
    name: unique('app'),
    ...image,
    ...more
  })
  return { applicationId: body.id as string, slug: body.slug as string }
}

export const happyFixtures: HappyFixtures = async fixture => {
  const { applicationId } = await create(fixture)
  return { applicationId, sourceId: applicationId }
}

/** An action on a container of the application's own; 503 naming the runtime is the documented answer without one. */
async function onContainer(fixture: HappyFixture): Promise<HappyCall> {
  const { k, ids } = fixture
  const made = await create(fixture)
  if (!k.isProvided(containerRuntime)) return { ids: made, expect: 503 }
  const runtime = k.service(containerRuntime)
  const projectId = ids.projectId ?? ''
  const {
    body: { slug }
  } = await fixture.admin.get(`/api/projects/${projectId}`)
  const network = await runtime.ensureNetwork({ id: projectId, slug: slug as string })
  const container = await runtime.create({
    name: made.slug,
    image: 'busybox:lab',
    owner: { projectId, applicationId: made.applicationId, deploymentId: randomUUID() },
    network,
    env: {},
    // It ends when it is told to, as a server does: what removes it waits for that.
    command: ['sh', '-c', 'trap "exit 0" TERM INT; sleep 1000 & wait'],
    cpuLimit: 0,
    memoryLimit: 0,
    caps: 'minimal',
    readonlyRootfs: true
  })
  await runtime.start(container)
  return { ids: made }
}

export const happyCalls: HappyCalls = {
  'POST /api/projects/{projectId}/applications': ({ unique }) => ({
    body: { name: unique('app'), ...image, ...account },
    expect: 201
  }),
  'PUT /api/projects/{projectId}/applications/{applicationId}': async fixture => ({
    ids: await create(fixture),
    body: { name: 'Renamed', ...account }
  }),
  'DELETE /api/projects/{projectId}/applications/{applicationId}': async fixture => ({
    ids: await create(fixture)
  }),
  'POST /api/projects/{projectId}/applications/{applicationId}/change-source': async fixture => ({
    ids: await create(fixture),
    body: { type: 'git', source_repo: 'https://example.com/shop.git', build_type: 'dockerfile' }
  }),
  'PUT /api/projects/{projectId}/applications/{applicationId}/health-check': () => ({
    body: { type: 'http', path: '/healthz' }
  }),
  'PUT /api/projects/{projectId}/applications/{applicationId}/resources': () => ({
    body: { cpu_limit: 0.5, memory_limit: 64 * 1024 * 1024 }
  }),
  'PUT /api/projects/{projectId}/applications/{applicationId}/runtime': () => ({
    body: { readonly_rootfs: false }
  }),
  'PUT /api/projects/{projectId}/applications/{applicationId}/webhook': () => ({
    body: { auto_deploy_branch: 'main' }
  }),
  'GET /api/projects/{projectId}/applications/{applicationId}/webhook/reveal': async fixture => ({
    ids: await create(fixture, {
      type: 'git',
      build_type: 'dockerfile',
      source_repo: 'https://example.com/shop.git',
      source_image: undefined
    })
  }),
  'POST /api/projects/{projectId}/applications/{applicationId}/start': onContainer,
  'POST /api/projects/{projectId}/applications/{applicationId}/stop': onContainer,
  'POST /api/projects/{projectId}/applications/{applicationId}/restart': onContainer
}
