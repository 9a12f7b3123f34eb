import { test } from 'tap'
import { withoutKept } from '../../lab/kept-images.js'

const image = (Id: string, ParentId: string, ...RepoTags: string[]) => ({
  Id,
  ParentId,
  RepoTags,
  Labels: {}
})

test('base images and the steps of what has a name are no leftovers; a step of nothing is, and what a test named', async t => {
  const images = [
    image('npm', '', '<none>:<none>'),
    image('sources', 'npm', '<none>:<none>'),
    image('stage', 'sources', 'platform-build:lab'),
    image('node', '', 'node:20'),
    image('step', '', '<none>:<none>'),
    image('built', 'step', 'busbar/web:1'),
    image('begun', 'node', '<none>:<none>'),
    image('failed', 'begun', '<none>:<none>'),
    image('both', '', 'busybox:lab', 'web:1'),
    { Id: 'untagged', ParentId: '', RepoTags: undefined as unknown as string[], Labels: {} }
  ]
  t.same(
    withoutKept(images).map(({ Id }) => Id),
    ['built', 'begun', 'failed', 'both', 'untagged']
  )
})
