import type { HappyCalls } from 'busbar/sdk/testing'

export const happyCalls: HappyCalls = {
  'POST /api/tokens': ({ unique, ids }) => ({ body: { name: unique('token'), scopes: ['read'], expires_in_days: 7, project_ids: [ids['projectId']] }, expect: 201 }),
  'DELETE /api/tokens/{tokenId}': async ({ admin, unique }) => ({
    ids: { tokenId: (await admin.post('/api/tokens', { name: unique('token'), scopes: ['metrics'] })).body.id as string }
  })
}
