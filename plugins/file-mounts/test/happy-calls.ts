import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'

const all = '/api/projects/{projectId}/applications/{applicationId}/file-mounts'
const body = { content: 'correct horse', is_secret: true }

/** A file mount that was just added. */
async function fileMount({ admin, ids, unique }: HappyFixture): Promise<{ fileMountId: string }> {
  const path = `/api/projects/${ids.projectId ?? ''}/applications/${ids.applicationId ?? ''}/file-mounts`
  const { body: made } = await admin.post(path, { ...body, mount_path: `/app/${unique('file')}` })
  return { fileMountId: made.id as string }
}

export const happyCalls: HappyCalls = {
  [`POST ${all}`]: ({ unique }) => ({ body: { ...body, mount_path: `/app/${unique('new')}` } }),
  [`PUT ${all}/{fileMountId}`]: async fixture => ({
    ids: await fileMount(fixture),
    body: { content: 'battery' }
  }),
  [`DELETE ${all}/{fileMountId}`]: async fixture => ({ ids: await fileMount(fixture) }),
  [`GET ${all}/{fileMountId}/reveal`]: async fixture => ({ ids: await fileMount(fixture) })
}
