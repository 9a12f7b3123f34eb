import { test } from 'tap'
import { LeftVolumes } from '../removal/left-volumes.js'
import { log } from './lab.js'

const projectId = 'of-one'

/** With so many of the project, and one of another; they are emptied when `go` is called. */
function backlog(count: number | (() => number)) {
  let go = (): void => {}
  const gone = new Promise<void>(resolve => {
    go = resolve
  })
  const removed: string[] = []
  const own = Array.from({ length: typeof count === 'number' ? count : 0 }, (_, at) => `held-${at}`)
  const holderOf = (id: string, of: string) => ({ id, containerId: `c-${id}`, projectId: of, volumes: [] })
  const left = new LeftVolumes({
    holders: {
      count: async () => (typeof count === 'number' ? count : count()),
      list: async () => [...own.map(id => holderOf(id, projectId)), holderOf('other', 'of-another')],
      remove: async ({ id }) => void removed.push(id),
      removeLeftImages: async () => {}
    },
    files: { removeLeft: async () => {} },
    emptier: {
      empty: async () => {
        await gone
        return 'empty'
      }
    },
    removeVolume: async () => {},
    // Time does not pass.
    clock: {
      sleep: async (_ms, signal) =>
        await new Promise<void>(resolve => signal?.addEventListener('abort', () => resolve()))
    },
    log
  })
  return { left, removed, go }
}

test('who removes a container waits for its volumes where many of its project wait to go', async t => {
  const { left, removed, go } = backlog(5)
  let isDone = false
  const noted = left.note(projectId).then(() => {
    isDone = true
  })
  await new Promise(setImmediate)
  t.notOk(isDone)
  go()
  await noted
  t.same(
    removed.sort(),
    ['held-0', 'held-1', 'held-2', 'held-3', 'held-4'],
    'those of others are not waited for'
  )
})

test('who removes a container waits for no volumes where few wait to go', async t => {
  const { left, removed } = backlog(4)
  await left.note(projectId)
  t.same(removed, [])
})

test('a container is gone also where nothing says how many volumes wait to go', async t => {
  const { left, removed } = backlog(() => {
    throw new Error('the engine is away')
  })
  await left.note(projectId)
  t.same(removed, [])
})
