import type { ImageInfo, ImageService } from 'busbar/api/images'
import { test } from 'tap'
import type { BuildContext } from '../api.js'
import { resolveImage } from '../registry/image-resolver.js'
import { findByName } from '../registry/local-image.js'
import { fetchedInMemory, noAccounts } from './fetched-lab.js'
import { clock, log } from './kit.js'

const digest = `sha256:${'7'.repeat(64)}`
const victim = {
  id: `sha256:61${'0'.repeat(62)}`,
  repoTags: ['victim:1'],
  repoDigests: [`victim@${digest}`]
} as unknown as ImageInfo

/** An engine that takes whatever it is asked for to mean this image. */
function engineWith(image: ImageInfo) {
  const asked: string[] = []
  const imageService: Pick<ImageService, 'image'> = {
    image: async name => {
      asked.push(name)
      return image
    }
  }
  return { imageService: imageService as ImageService, asked }
}

const unasked = new Error('a registry was asked')

const resolve = async (
  imageService: ImageService,
  reference: string,
  pulled: string[] = []
): Promise<ImageInfo> =>
  (
    await resolveImage(
      {
        imageService,
        fetched: fetchedInMemory(),
        accounts: noAccounts,
        formerImages: { isOfOthers: async () => false },
        clock,
        log,
        room: { reserve: async () => ({ end: () => {} }) },
        registries: {
          offer: async ({ name }) => {
            pulled.push(name)
            throw unasked
          },
          checkOpen: async () => {
            throw unasked
          }
        }
      },
      { reference, projectId: 'project', applicationId: 'mine', deploymentId: 'this' },
      { log: () => {}, signal: new AbortController().signal } as unknown as BuildContext
    )
  ).image

test('an image that does not carry the name is not what it stands for, whatever the engine says', async t => {
  const { imageService, asked } = engineWith(victim)
  const others = [
    '61',
    '610',
    '61:latest',
    'victim',
    'victim:2',
    'team/victim:1',
    'registry.example.com/victim:1',
    `victim@sha256:${'9'.repeat(64)}`,
    `61@${digest}`,
    victim.id,
    victim.id.slice(0, 9)
  ]
  for (const name of others) t.equal(await findByName(imageService, name), undefined, name)
  for (const name of ['victim:1', 'docker.io/library/victim:1', `victim@${digest}`])
    t.equal(await findByName(imageService, name), victim, name)
  t.same(
    asked.filter(name => !/[:@]/.test(name) || name.startsWith('sha256:')),
    [],
    'nor is the engine asked for what it could take for the beginning of an id'
  )
})

test('a name of two hex digits is pulled by its tag, and its image is not the one whose id begins with them', async t => {
  const { imageService } = engineWith(victim)
  const pulled: string[] = []
  await t.rejects(resolve(imageService, '61', pulled), unasked)
  t.same(pulled, ['61:latest'])
})

test('an image that was built for another application is nobody else’s, by whichever name', async t => {
  const { imageService } = engineWith({
    ...victim,
    builtFor: { applicationId: 'theirs', deploymentId: 'd' }
  } as ImageInfo)
  await t.rejects(resolve(imageService, 'victim:1'), { code: 'E_IMAGE_FOREIGN' })
  const { imageService: own } = engineWith({
    ...victim,
    builtFor: { applicationId: 'mine', deploymentId: 'd' }
  } as ImageInfo)
  t.equal((await resolve(own, 'victim:1')).id, victim.id)
})
