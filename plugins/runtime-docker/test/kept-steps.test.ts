import { test } from 'tap'
import { type ListedImage, unneededSteps } from '../build-steps.js'
import { StageEnds } from '../stage-ends.js'

const image = (
  id: string,
  parentId: string,
  minute: number,
  changes: Partial<ListedImage> = {}
): ListedImage => ({
  id,
  parentId,
  sizeBytes: 1,
  createdAt: new Date(minute * 60_000),
  isUsed: false,
  isOwned: true,
  ...changes
})

test('the newest attempts stay with the steps before them, those of before an image that succeeded do not', t => {
  const images = [
    image('base', '', 0, { isOwned: false }),
    image('a', 'base', 1),
    image('a1', 'a', 2),
    image('a2', 'a', 3),
    image('b', 'base', 4),
    image('b1', 'b', 5)
  ]
  const removed = (newest: number, afterMinute: number) =>
    [...unneededSteps(images, { newest, after: new Date(afterMinute * 60_000) }).ids].sort()
  t.same(removed(0, 0), ['a', 'a1', 'a2', 'b', 'b1'])
  t.same(removed(1, 0), ['a', 'a1', 'a2'])
  t.same(removed(2, 0), ['a1'], 'what two have in common stays with one of them')
  t.same(removed(3, 0), [])
  t.same(removed(3, 2.5), ['a1'])
  t.same(removed(3, 9), ['a', 'a1', 'a2', 'b', 'b1'])
  t.end()
})

test('the newest attempts stay as far as they take no more than they may, from their first step on', t => {
  const sized = (id: string, parentId: string, minute: number, sizeBytes: number) =>
    image(id, parentId, minute, { sizeBytes })
  const images = [
    image('base', '', 0, { isOwned: false, sizeBytes: 100 }),
    sized('a', 'base', 1, 110),
    sized('a1', 'a', 2, 160),
    sized('a2', 'a1', 3, 161),
    sized('b', 'base', 4, 130),
    sized('c', 'a', 5, 111)
  ]
  const removed = (newestBytes: number) =>
    [...unneededSteps(images, { newest: 3, after: new Date(0), newestBytes }).ids].sort()
  t.same(removed(0), ['a', 'a1', 'a2', 'b', 'c'])
  t.same(removed(10), ['a1', 'a2', 'b', 'c'])
  t.same(removed(11), ['a1', 'a2', 'b'])
  t.same(removed(41), ['a1', 'a2'], 'a large step goes with all that continue it')
  t.same(removed(92), [])
  t.end()
})

test('the ends of stages are read from the words of the engine', t => {
  const ends = (...texts: string[]) => {
    const stages = new StageEnds()
    for (const text of texts) stages.read(text)
    return stages.ids
  }
  const id = (letter: string) => ` ---> ${letter.repeat(12)}\n`
  t.same(
    ends(
      'Step 1/2 : FROM x',
      '\n',
      id('a'),
      'Step 2/2 : RUN y',
      '\n',
      ' ---> Running in 111111111111\n',
      id('b')
    ),
    [],
    'one stage is the image itself'
  )
  t.same(
    ends(
      'Step 1/4 : FROM x AS one',
      id('a'),
      'Step 2/4 : RUN y',
      ' ---> Using cache\n',
      id('b'),
      'Step 3/4 : from z',
      id('c'),
      'Step 4/4 : FROM w',
      id('d')
    ),
    ['b'.repeat(12), 'c'.repeat(12)]
  )
  t.equal(
    ends(
      ...Array.from({ length: 500 }, (_, index) => [
        ` ---> ${index.toString(16).padStart(12, '0')}\n`,
        'Step 1/4 : FROM x'
      ]).flat()
    ).length,
    50,
    'a build that prints them without end is not believed without end'
  )
  t.end()
})
