import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'

const one = '/api/projects/{projectId}/applications/{applicationId}'

async function fromGit({ admin, ids, unique }: HappyFixture): Promise<{ applicationId: string }> {
  const { body } = await admin.post(`/api/projects/${ids.projectId ?? ''}/applications`, {
    name: unique('git'),
    type: 'git',
    build_type: 'static',
    source_repo: 'https://example.com/site.git'
  })
  return { applicationId: body.id as string }
}

async function withDeployKey(fixture: HappyFixture): Promise<{ applicationId: string }> {
  const ids = await fromGit(fixture)
  await fixture.admin.post(
    `/api/projects/${fixture.ids.projectId ?? ''}/applications/${ids.applicationId}/deploy-key`
  )
  return ids
}

export const happyCalls: HappyCalls = {
  [`DELETE ${one}/cache`]: async fixture => ({ ids: await fromGit(fixture) }),
  [`GET ${one}/deploy-key`]: async fixture => ({ ids: await withDeployKey(fixture) }),
  [`POST ${one}/deploy-key`]: async fixture => ({ ids: await fromGit(fixture) }),
  [`DELETE ${one}/host-keys`]: async fixture => ({ ids: await fromGit(fixture) }),
  [`DELETE ${one}/deploy-key`]: async fixture => ({ ids: await withDeployKey(fixture) })
}
