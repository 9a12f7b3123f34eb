import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'

const another = async ({ admin, unique }: HappyFixture): Promise<{ projectId: string }> => ({
  projectId: (await admin.post('/api/projects', { name: 'Another', slug: unique('another') })).body
    .id as string
})

export const happyCalls: HappyCalls = {
  'POST /api/projects': ({ unique }) => ({ body: { name: 'New', slug: unique('new') }, expect: 201 }),
  'PUT /api/projects/{projectId}': () => ({ body: { name: 'Renamed' } }),
  'DELETE /api/projects/{projectId}': async fixture => ({ ids: await another(fixture) }),
  'PUT /api/projects/{projectId}/sharing': () => ({ body: { shared: true } }),
  'PUT /api/projects/{projectId}/members': async ({ k }) => ({
    body: { email: (await k.user('colleague')).email, role: 'viewer' }
  }),
  'DELETE /api/projects/{projectId}/members/{userId}': async ({ k }) => ({
    ids: { userId: (await k.user('colleague')).id }
  }),
  'PUT /api/projects/{projectId}/transfer': async fixture => ({
    ids: await another(fixture),
    body: { user_id: (await fixture.k.user('heir')).id }
  })
}
