import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HappyCall, HappyCalls, HappyFixture, HappyFixtures } from 'busbar/sdk/testing'
import { until } from 'busbar/sdk/testing'
import { startGitServer } from '../../../lab/git-server.js'
import { sample } from './deploy-lab.js'

let repository: Promise<string> | undefined

/** One repository for all rounds; its server does not keep the process alive, and goes with it. */
async function sampleRepository(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'busbar-happy-git-'))
  process.once('exit', () => rmSync(root, { recursive: true, force: true }))
  const git = await startGitServer({ root, isBackground: true })
  return (await git.createRepository('happy', sample('one'))).url
}

const pathOf = ({ ids }: HappyFixture): string =>
  `/api/projects/${ids.projectId ?? ''}/applications/${ids.deployedId ?? ''}`

/** Waits until nothing is being deployed; the newest deployment. */
async function settled({ admin, k }: HappyFixture, path: string): Promise<any> {
  return await until(
    async () => {
      k.resetRateLimits()
      const [newest] = (await admin.get(`${path}/deployments`)).body as any[]
      return newest.finished_at === null ? undefined : newest
    },
    'nothing is being deployed',
    120_000
  )
}

export const happyFixtures: HappyFixtures = async fixture => {
  repository ??= sampleRepository()
  const { admin, ids, unique } = fixture
  const {
    body: { id }
  } = await admin.post(`/api/projects/${ids.projectId ?? ''}/applications`, {
    name: unique('deployed'),
    type: 'git',
    build_type: 'dockerfile',
    source_repo: await repository,
    container_port: 8080
  })
  const path = `/api/projects/${ids.projectId ?? ''}/applications/${id as string}`
  await admin.post(`${path}/deploy`)
  const deployment = await settled(fixture, path)
  if (deployment.status !== 'success')
    throw new Error(`the happy deployment failed: ${deployment.error_message as string}`)
  return { applicationId: id as string, deployedId: id as string, deploymentId: deployment.id as string }
}

const whenSettled = async (fixture: HappyFixture): Promise<HappyCall> => {
  await settled(fixture, pathOf(fixture))
  return {}
}

export const happyCalls: HappyCalls = {
  'POST /api/projects/{projectId}/applications/{applicationId}/deploy': whenSettled,
  'POST /api/projects/{projectId}/applications/{applicationId}/reload': whenSettled,
  'POST /api/projects/{projectId}/applications/{applicationId}/rebuild': whenSettled,
  'POST /api/projects/{projectId}/applications/{applicationId}/build': whenSettled,
  'POST /api/projects/{projectId}/applications/{applicationId}/rollback': async fixture => ({
    ...(await whenSettled(fixture)),
    body: { deployment_id: fixture.ids.deploymentId }
  }),
  'POST /api/projects/{projectId}/applications/{applicationId}/deployments/{deploymentId}/cancel':
    async fixture => {
      await settled(fixture, pathOf(fixture))
      return {
        ids: { deploymentId: (await fixture.admin.post(`${pathOf(fixture)}/deploy`)).body.id as string }
      }
    },
  'POST /api/projects/{projectId}/applications/{applicationId}/deploy-hook': () => ({}),
  'DELETE /api/projects/{projectId}/applications/{applicationId}/deploy-hook': () => ({}),
  'GET /api/projects/{projectId}/applications/{applicationId}/deploy-hook/reveal': async fixture => {
    await fixture.admin.post(`${pathOf(fixture)}/deploy-hook`)
    return {}
  },
  'POST /api/webhooks/deploy/{token}': async fixture => ({
    as: fixture.k.as.anonymous(),
    ids: { token: (await fixture.admin.post(`${pathOf(fixture)}/deploy-hook`)).body.token as string }
  })
}
