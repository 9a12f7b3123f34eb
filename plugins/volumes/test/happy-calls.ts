import type { HappyCalls, HappyFixture, HappyFixtures } from 'busbar/sdk/testing'

const all = '/api/projects/{projectId}/applications/{applicationId}/volumes'

/** A volume that was just added. */
async function volume({ admin, ids, unique }: HappyFixture): Promise<{ volumeId: string }> {
  const name = unique('volume').toLowerCase()
  const path = `/api/projects/${ids.projectId ?? ''}/applications/${ids.applicationId ?? ''}/volumes`
  const { body } = await admin.post(path, { name, mount_path: `/data/${name}` })
  return { volumeId: body.id as string }
}

export const happyCalls: HappyCalls = {
  [`POST ${all}`]: ({ unique }) => ({
    body: { name: unique('new'), mount_path: `/data/${unique('new')}` }
  }),
  [`DELETE ${all}/{volumeId}`]: async fixture => ({ ids: await volume(fixture) })
}

/** One that is there for whoever does something with it. */
export const happyFixtures: HappyFixtures = async fixture => await volume(fixture)
