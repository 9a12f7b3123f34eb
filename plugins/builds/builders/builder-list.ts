import type { Contributions } from 'busbar/sdk'
import type { Builder } from '../api.js'
import type { BuilderAnswer } from '../schemas.js'

/** Which build types there are, and whether each can be used on this machine. */
export async function listBuilders(builders: Contributions<Builder>): Promise<BuilderAnswer[]> {
  const rows = await Promise.all(
    builders.entries().map(async ({ key, plugin, value }) => {
      const reason = (await value.unavailable?.()) ?? null
      return { build_type: key, plugin, available: reason === null, reason }
    })
  )
  return rows.sort((a, b) => (a.build_type < b.build_type ? -1 : 1))
}
