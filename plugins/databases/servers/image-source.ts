import { randomUUID } from 'node:crypto'
import type { ImagePreparation, PreparedImage, PreparedImages } from 'busbar/api/builds'
import type { OptionalHandle, Secrets } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { DatabaseRow } from '../records/database-row.js'

interface ImageSourceParts {
  readonly preparation: OptionalHandle<ImagePreparation>
  readonly prepared: OptionalHandle<PreparedImages>
  readonly secrets: Secrets
}

interface FetchContext {
  readonly say: (message: string) => void
  readonly signal: AbortSignal
}

/** Images of databases: fetched as those of applications are, and kept by their digest. */
export class ImageSource {
  constructor(private readonly parts: ImageSourceParts) {}

  /** What the name stands for now. */
  async fetch(
    row: Pick<DatabaseRow, 'id' | 'project_id' | 'slug'>,
    image: string,
    { say, signal }: FetchContext
  ): Promise<PreparedImage> {
    const preparation = this.parts.preparation.get()
    if (preparation === undefined) throw problems.buildsOff({ plugin: 'builds' })
    const secrets = this.parts.secrets.scope()
    try {
      return await preparation.prepare(
        {
          applicationId: row.id,
          deploymentId: randomUUID(),
          projectId: row.project_id,
          slug: row.slug,
          source: { type: 'image', image },
          buildType: 'image',
          builderImage: null,
          customBuildpacks: [],
          variables: []
        },
        {
          log: ({ msg }) => {
            say(msg)
          },
          onCommit: () => {},
          secrets,
          signal
        }
      )
    } finally {
      secrets.release()
    }
  }

  /** The one that its containers were made from before; fetched again by its digest where it is not on the engine any more. */
  async again(row: DatabaseRow, context: FetchContext): Promise<PreparedImage> {
    const { image_reference: reference, image } = row
    if (reference !== null) {
      const found = await this.parts.prepared.get()?.find(row.id, reference)
      if (found !== undefined) return found
      if (reference.includes('@')) return await this.fetch(row, reference, context)
    }
    return await this.fetch(row, image ?? '', context)
  }

  /** The database needs these, and no others any more. */
  async keep(databaseId: string, references: ReadonlyArray<string | null>): Promise<void> {
    await this.parts.prepared.get()?.keep(
      databaseId,
      references.filter(one => one !== null)
    )
  }
}
