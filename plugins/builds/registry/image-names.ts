import { randomBytes } from 'node:crypto'
import type { Database } from 'busbar/sdk'

/** Of the names under which foreign programs leave their images until the engine has put labels on them. */
export const builderPrefix = 'busbar-build-'

/** The random part of an application's image names. */
export interface ImageNames {
  /** Letters and digits, the same for as long as the application exists. */
  tokenOf(applicationId: string): Promise<string>
}

export class ImageNameStore implements ImageNames {
  constructor(private readonly db: Database) {}

  async tokenOf(applicationId: string): Promise<string> {
    const [row] = await this.db.sql<{ token: string }>(
      `
      insert into $schema.image_name (application_id, token) values (:applicationId, :token)
      on conflict (application_id) do update set token = $schema.image_name.token returning token`,
      { applicationId, token: randomBytes(10).toString('hex') }
    )
    return row?.token ?? ''
  }

  async remove(applicationId: string): Promise<void> {
    await this.db.sql('delete from $schema.image_name where application_id = ?', [applicationId])
  }
}

/** `<slug>-<token>:<first 8 of the deployment>`, in the letters that the engine allows in a name. */
export const imageTag = ({
  slug,
  token,
  deploymentId
}: {
  readonly slug: string
  readonly token: string
  readonly deploymentId: string
}): string =>
  `${slug
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')}-${token}:${deploymentId.slice(0, 8)}`

/** The name under which a foreign program leaves its image: one build of an application runs at a time. */
export const unlabelledName = (applicationId: string, token: string): string =>
  `${builderPrefix}${applicationId}-${token}:latest`
