import { type Database, definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { createImageName } from '../migrations/004-create-image-name.js'
import { createFetchedImage } from '../migrations/008-create-fetched-image.js'
import { createImageFetch } from '../migrations/009-create-image-fetch.js'
import { everybody, type FetchedImage, FetchedImageStore, type Purpose } from '../registry/fetched-images.js'
import { ImageNameStore } from '../registry/image-names.js'

export const name = 'registry.example.com/team/app:1'
export const repository = 'registry.example.com/team/app'
export const digestOf = (letter: string): string => `sha256:${letter.repeat(64)}`

/** What was fetched, in PostgreSQL. */
export async function openStore(t: Test, now: () => Date = () => new Date()) {
  let db: Database | undefined
  const definition = definePlugin({
    id: 'fetches',
    needs: { db: kernel.database },
    migrations: [createImageName, createFetchedImage, createImageFetch],
    start: ({ use }) => {
      db = use.db
      return {}
    }
  })
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'fetches', grants: ['database'] }, definition }]
  })
  t.teardown(async () => await k.close())
  if (db === undefined) throw new Error('the plugin has not started')
  const store = new FetchedImageStore(db, { now }, new ImageNameStore(db), 3600_000)
  const fetched = async (
    holder: string,
    digest = digestOf('a'),
    {
      purpose = 'container',
      applicationId = holder,
      askedAt = now()
    }: { purpose?: Purpose; applicationId?: string; askedAt?: Date } = {}
  ): Promise<FetchedImage> => {
    const layers = [digestOf('1')]
    const { id: fetchId, handle } = await store.begin({ holder, repository, digest, applicationId })
    const image = { holder, repository, digest, handle, layers }
    await store.settle(image, { fetchId, name, askedAt, applicationId, purpose })
    return image
  }
  const begin = async (digest: string, { holder = everybody, applicationId = 'any' } = {}) =>
    await store.begin({ holder, repository, digest, applicationId })
  return { store, fetched, begin }
}
