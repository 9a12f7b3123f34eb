import type { DeployableApplication } from 'busbar/api/applications'
import type { BuiltImage } from 'busbar/api/images'
import { test } from 'tap'
import { removeOrphanedImages } from '../cache/orphaned-images.js'
import { log } from './kit.js'

test('what was built for an application that does not exist any more is removed, and nothing else', async t => {
  const image = (id: string, owner: BuiltImage['owner'], ...tags: string[]): BuiltImage => ({
    id,
    owner,
    tags
  })
  const removed: string[] = []
  await removeOrphanedImages({
    log,
    applications: {
      deployable: async id => (id === 'lives' ? ({ id } as DeployableApplication) : undefined)
    },
    imageService: {
      images: async () => [
        image('step', { projectId: 'p', applicationId: 'gone' }),
        image('named', { projectId: 'p', applicationId: 'gone' }, 'gone:1', 'gone:2'),
        image('other', { projectId: 'p', applicationId: 'lives' }, 'lives:1'),
        image('step of other', { projectId: 'p', applicationId: 'lives' }),
        image('of no application', { projectId: 'p' })
      ],
      removeImage: async reference => {
        removed.push(reference)
        if (reference === 'gone:1') throw new Error('a container needs it')
      },
      clearBuildCache: async owner => {
        removed.push(`cache of ${owner.applicationId ?? 'everybody'}`)
      }
    }
  })
  t.same(removed, ['step', 'gone:1', 'gone:2', 'cache of gone'])
})
