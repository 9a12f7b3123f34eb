import type { HappyCalls } from 'busbar/sdk/testing'

export const happyCalls: HappyCalls = {
  'DELETE /api/projects/{projectId}/applications/{applicationId}/cache': async ({ admin, ids, unique }) => {
    const { body } = await admin.post(`/api/projects/${ids.projectId ?? ''}/applications`, {
      name: unique('cached'),
      type: 'git',
      build_type: 'static',
      source_repo: 'https://example.com/site.git'
    })
    return { ids: { applicationId: body.id as string } }
  }
}
