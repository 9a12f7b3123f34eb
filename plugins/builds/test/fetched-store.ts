import { type Database, definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { createImageName } from '../migrations/004-create-image-name.js'
import { createFetchedImage } from '../migrations/008-create-fetched-image.js'
import { createImageFetch } from '../migrations/009-create-image-fetch.js'
import { createImageClaim } from '../migrations/010-create-image-claim.js'
import { everybody, type FetchedImage, FetchedImageStore, type Purpose } from '../registry/fetched-images.js'
import { ImageClaims } from '../registry/image-claims.js'
import { ImageNameStore } from '../registry/image-names.js'
import { clock, log } from './kit.js'

export const name = 'registry.example.com/team/app:1'
export const repository = 'registry.example.com/team/app'
const forever = async (): Promise<void> => await new Promise(() => {})

export const digestOf = (letter: string): string => `sha256:${letter.repeat(64)}`

/** What was fetched, in PostgreSQL. */
export async function openStore(t: Test, now: () => Date = () => new Date()) {
  let db: Database | undefined
  const definition = definePlugin({
    id: 'fetches',
    needs: { db: kernel.database },
    migrations: [createImageName, createFetchedImage, createImageFetch, createImageClaim],
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
  const database = db
  const store = new FetchedImageStore(db, { now }, new ImageNameStore(db), 3600_000)
  /** Of a process: `renews` goes on to say that it lives. */
  const openClaims = ({ onEnd = () => {}, renews = true } = {}): ImageClaims =>
    new ImageClaims({
      db: database,
      log,
      onEnd,
      clock: { now, sleep: renews ? async (ms, signal) => await clock.sleep(ms, signal) : forever }
    })
  const fetched = async (
    holder: string,
    digest = digestOf('a'),
    {
      purpose = 'container',
      applicationId = holder,
      deploymentId = '',
      askedAt = now()
    }: { purpose?: Purpose; applicationId?: string; deploymentId?: string; askedAt?: Date } = {}
  ): Promise<FetchedImage> => {
    const layers = [digestOf('1')]
    const { id: fetchId, handle } = await store.begin({ holder, repository, digest, applicationId })
    const image = { holder, repository, digest, handle, layers }
    await store.settle(image, { fetchId, name, askedAt, applicationId, deploymentId, purpose })
    return image
  }
  const begin = async (digest: string, { holder = everybody, applicationId = 'any' } = {}) =>
    await store.begin({ holder, repository, digest, applicationId })
  return { k, store, fetched, begin, openClaims }
}
