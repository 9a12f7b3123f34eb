import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'

const tokenFor = async ({ admin, unique }: HappyFixture): Promise<{ tokenId: string }> => ({
  tokenId: (await admin.post('/api/tokens', { name: unique('token'), scopes: ['metrics'] })).body.id as string
})

export const happyCalls: HappyCalls = {
  'POST /api/tokens': ({ unique, ids }) => ({
    body: { name: unique('token'), scopes: ['read'], expires_in_days: 7, project_ids: [ids.projectId] },
    expect: 201
  }),
  'GET /api/tokens/{tokenId}/reach': async fixture => ({ ids: await tokenFor(fixture) }),
  'DELETE /api/tokens/{tokenId}': async fixture => ({ ids: await tokenFor(fixture) })
}
