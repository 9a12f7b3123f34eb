import { type HappyCalls, until } from 'busbar/sdk/testing'

export const happyCalls: HappyCalls = {
  'POST /api/projects/{projectId}/applications/{applicationId}/terminal': async ({ admin, ids, k }) => {
    // Without what deploys applications none has a container.
    if (ids.deployedId === undefined) return { expect: 409 }
    // Those of earlier rounds are nobody's any more, and would count for a minute.
    await k.query('delete from terminal.session')
    const path = `/api/projects/${ids.projectId ?? ''}/applications/${ids.deployedId}`
    await until(
      async () => {
        k.resetRateLimits()
        return (await admin.post(`${path}/start`)).status === 200
      },
      'the application runs',
      120_000
    )
    return { ids: { applicationId: ids.deployedId } }
  }
}
