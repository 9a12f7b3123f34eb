import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'

const body = { registry: 'registry.example.com', username: 'deployer', password: 'correct horse' }

/** The id of an account that was just set; a host under `.invalid` is never found. */
async function account({ admin, ids, unique }: HappyFixture, of: 'project' | 'installation') {
  const path = of === 'project' ? `/api/projects/${ids.projectId ?? ''}/registries` : '/api/registries'
  const { body: set } = await admin.put(path, { ...body, registry: `${unique('registry')}.invalid` })
  return { registryAccountId: set.id as string }
}

export const happyCalls: HappyCalls = {
  'PUT /api/projects/{projectId}/registries': () => ({ body }),
  'DELETE /api/projects/{projectId}/registries/{registryAccountId}': async fixture => ({
    ids: await account(fixture, 'project')
  }),
  'POST /api/projects/{projectId}/registries/{registryAccountId}/test': async fixture => ({
    ids: await account(fixture, 'project')
  }),
  'PUT /api/registries': () => ({ body }),
  'DELETE /api/registries/{registryAccountId}': async fixture => ({
    ids: await account(fixture, 'installation')
  }),
  'POST /api/registries/{registryAccountId}/test': async fixture => ({
    ids: await account(fixture, 'installation')
  })
}
