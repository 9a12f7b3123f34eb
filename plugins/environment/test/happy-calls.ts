import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'

const vars = [
  { key: 'GREETING', value: 'hello', is_secret: false },
  { key: 'PASSWORD', value: 'correct horse', is_secret: true }
]

/** The id of a variable that was just set. */
async function variable(
  { admin, ids }: HappyFixture,
  of: 'project' | 'application'
): Promise<{ envVarId: string }> {
  const path = `/api/projects/${ids.projectId ?? ''}${of === 'project' ? '' : `/applications/${ids.applicationId ?? ''}`}/env`
  await admin.put(path, { vars })
  return { envVarId: (await admin.get(path)).body[0].id as string }
}

export const happyCalls: HappyCalls = {
  'PUT /api/projects/{projectId}/env': () => ({ body: { vars } }),
  'GET /api/projects/{projectId}/env/{envVarId}/reveal': async fixture => ({
    ids: await variable(fixture, 'project')
  }),
  'PUT /api/projects/{projectId}/applications/{applicationId}/env': () => ({ body: { vars } }),
  'GET /api/projects/{projectId}/applications/{applicationId}/env/{envVarId}/reveal': async fixture => ({
    ids: await variable(fixture, 'application')
  })
}
