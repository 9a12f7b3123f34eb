import type { ImageUse } from 'busbar/api/images'
import { test } from 'tap'
import {
  type ImageRecord,
  imageHoldings,
  keepKey,
  type OwnedImage,
  ownedImages,
  spareImages
} from '../disk/image-holdings.js'

const part = (id: string, bytes: number) => ({ id, bytes })
const image = (
  name: string,
  ownerId: string | undefined,
  parts: ReadonlyArray<ReturnType<typeof part>>,
  containerIds: readonly string[] = []
): OwnedImage => ({
  id: `id of ${name}`,
  containerIds,
  parts,
  ownerIds: new Set(ownerId === undefined ? [] : [ownerId]),
  keeps: new Set([name])
})
const record = (reference: string, changes: Partial<ImageRecord> = {}): ImageRecord => ({
  applicationId: 'app',
  deploymentId: `deployment of ${reference}`,
  reference,
  isActive: false,
  isServing: false,
  ...changes
})
const base = part('base', 500)

test('whose an image is says its verified owner, or who keeps what was fetched', async t => {
  const use = (names: readonly string[], changes: Partial<ImageUse> = {}): ImageUse => ({
    id: `id of ${names[0] ?? ''}`,
    names,
    containerIds: [],
    parts: [],
    ...changes
  })
  const found = ownedImages(
    [
      use(['built:1', 'built:2'], { owner: { projectId: 'a' } }),
      use(['busbar-fetched-1:latest']),
      use(['busbar-fetched-2:latest']),
      use(['busbar-fetched-3:latest'], { containerIds: ['c'] }),
      use(['node:20'], { containerIds: ['c'] })
    ],
    [
      { applicationId: 'x', name: 'busbar-fetched-1:latest', reference: 'team/app@sha256:1' },
      { applicationId: 'y', name: 'busbar-fetched-1:latest', reference: 'team/app@sha256:1' }
    ],
    {
      ofProject: id => `owner of ${id ?? ''}`,
      ofApplication: id => `owner of ${id}`,
      ofContainer: id => `owner of ${id}`
    }
  )
  t.same(
    found.map(({ ownerIds, keeps }) => [[...ownerIds], [...keeps]]),
    [
      [['owner of a'], ['built:1', 'built:2']],
      [
        ['owner of x', 'owner of y'],
        ['x team/app@sha256:1', 'y team/app@sha256:1']
      ],
      [['owner of c'], []],
      [[], ['node:20']]
    ],
    'a fetched one that nothing keeps is a cache'
  )
  t.equal(keepKey('x', 'team/app@sha256:1'), 'x team/app@sha256:1')
  t.equal(keepKey('x', 'built:1'), 'built:1')
})

test('an owner holds what its images are made of, and its part of what others have too', async t => {
  const { ofOwner, ofContainer } = imageHoldings([
    image('node', undefined, [base]),
    image('a1', 'a', [base, part('deps', 40), part('a1', 3)], ['one']),
    image('a2', 'a', [base, part('deps', 40), part('a2', 5)]),
    image('a3', 'a', [part('common', 70), part('a3', 7)], ['two', 'three']),
    image('b1', 'b', [base, part('b1', 11)], ['four']),
    image('b2', 'b', [part('common', 70)])
  ])
  t.same(
    [...ofOwner],
    [
      ['a', 55 + 35],
      ['b', 11 + 35]
    ]
  )
  t.same(
    [...ofContainer],
    [
      ['one', 3],
      ['four', 11]
    ],
    'of a container what no other image and no other container needs'
  )
})

const images = [
  image('node', undefined, [base]),
  ...[1, 2, 3, 4].map(n => image(`v${n}`, 'a', [base, part('deps', 40), part(`own ${n}`, 10)])),
  image('v5', 'a', [base, part('deps', 40), part('own 5', 10)], ['container'])
]
const history = [5, 4, 3, 2, 1].map(n => record(`v${n}`, { isServing: n === 5 }))
const plenty = { ownerId: 'a', missing: 1000, held: 10_000, next: 0 }
const spare = (
  records: readonly ImageRecord[],
  limits: Partial<Parameters<typeof spareImages>[2]> = {},
  of: readonly OwnedImage[] = images
) =>
  spareImages(of, records, { ...plenty, deployedIds: new Set(['deployment of v5']), ...limits }).map(
    ({ reference, bytes }) => `${reference} ${bytes}`
  )

test('images that are furthest back go first, and no more than are needed', async t => {
  t.same(spare(history), ['v1 10', 'v2 10', 'v3 10', 'v4 10'], 'never the one that runs')
  t.same(spare(history, { missing: 15 }), ['v1 10', 'v2 10'])
  t.same(spare(history, { held: 100, next: 85 }), ['v1 10', 'v2 10'], 'the next owner has more then')
  t.same(
    spare([record('w2', { applicationId: 'b' }), ...history], {}, [
      ...images,
      image('w2', 'a', [part('w2', 90)])
    ]),
    ['v1 10', 'v2 10', 'v3 10', 'w2 90', 'v4 10'],
    'the last one before that which runs goes last of all'
  )
  t.same(spareImages(images, history, { ...plenty, deployedIds: new Set() })[0]?.deploymentIds, [
    'deployment of v1'
  ])
})

test('none goes that something needs', async t => {
  const last = history.slice(0, 2)
  t.same(spare([record('v4', { deploymentId: 'rolls back', isActive: true }), ...last]), [])
  t.same(spare(last, { deployedIds: new Set(['deployment of v5', 'deployment of v4']) }), [])
  t.same(spare([record('', { deploymentId: 'builds', isActive: true }), ...last]), ['v4 10'])
  t.same(
    spare([record('v5', { isServing: true }), record('free')], {}, [
      ...images,
      image('free', undefined, [part('free', 8)])
    ]),
    [],
    'nor one of nobody'
  )
  t.same(
    spare(last, { deployedIds: new Set() }, images.slice(0, -1)),
    ['v4 10'],
    'what is not on the engine is passed by'
  )
})

test('one that gives nothing back stays', async t => {
  const shared = [part('deps', 40)]
  t.same(
    spare(history, {}, [
      image('v1', 'a', shared),
      image('v2', 'a', [part('two', 20)]),
      image('v3', 'a', [part('two', 20)]),
      image('v4', 'a', shared),
      image('v5', 'a', shared, ['container'])
    ]),
    ['v2 0', 'v3 20'],
    'what two of them share comes back with the second'
  )
  t.same(spare(history, { ownerId: 'b' }), [], 'nor one of another owner')
  const twice = { ...image('v1', 'a', [part('one', 9)]), keeps: new Set(['v1', 'other']) }
  t.same(spare(history, {}, [twice]), [], 'it has a name that stays')
  t.same(spare([...history, record('other')], {}, [twice]), ['other 0', 'v1 9'])
})

test('of an application without a container all go, that which ran last after all others', async t => {
  const rest = images.slice(0, -1)
  const ran = [record('v4', { isServing: true }), record('v3')]
  const all = [image('w1', 'a', [part('w1', 1)]), ...rest]
  t.same(
    spare([...ran, record('w1', { applicationId: 'b' })], { deployedIds: new Set() }, all).map(
      words => words.split(' ')[0]
    ),
    ['v3', 'w1', 'v4']
  )
  t.same(
    spare([record('', { deploymentId: 'builds', isActive: true }), ...ran], { deployedIds: new Set() }, rest),
    ['v3 10'],
    'while nothing is under way for it'
  )
})
