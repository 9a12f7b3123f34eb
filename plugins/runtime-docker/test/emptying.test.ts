import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { emptyingCommand } from '../removal/emptying-script.js'
import { FairSlots } from '../removal/fair-slots.js'
import { engineTest, startLab } from './lab.js'

const long = 'n'.repeat(100)
const deep = Array(10).fill(long).join('/')

/**
 * More names side by side than one command takes, files of several owners, many links, names that begin with a dot, and
 * folders so deep down that no path leads there.
 */
const fill = `cd /data
i=0; while [ $i -lt 28000 ]; do : > $i-${long}${long}; i=$((i + 1)); done
mkdir links .hidden ..twice && echo one > links/file && chown 1234 links && chmod 500 links
i=0; while [ $i -lt 2000 ]; do ln links/file links/$i; i=$((i + 1)); done
mkdir -p deep/${long}; touch deep/${long}/file
i=0; while [ $i -lt 20 ]; do
  mkdir -p wrap/${deep}
  mv deep wrap/${deep}/ && mv wrap deep; i=$((i + 1))
done
mkdir sticky && touch sticky/file && chown -R 1234 sticky && chmod 1000 sticky`

engineTest(
  'a volume becomes empty whatever is in it, by the programs of its machine as by smaller ones',
  async t => {
    const { runtime, docker, spec, projectId } = startLab(t)
    const network = await runtime.ensureNetwork({ id: projectId, slug: `t${projectId.slice(0, 8)}` })
    const volume = `busbar-test-${projectId}`
    await runtime.ensureVolume(volume, { projectId })
    const run = async (name: string, command: readonly string[]): Promise<string> => {
      const volumes = [{ volume, path: '/data' }]
      const id = await runtime.create(
        spec(name, network, { command, volumes, caps: 'standard', restarts: false })
      )
      await runtime.start(id)
      await docker.getContainer(id).wait()
      const lines = await runtime.tail(id, 5)
      await runtime.remove(id)
      return lines.join('\n')
    }
    const filled = ['sh', '-c', `${fill}; find /data 2>/dev/null | wc -l`]
    t.match(await run('filled', filled), /^3\d{4}$/m)
    t.equal(await run('emptied', emptyingCommand(['/data'])), '')
    t.equal(await run('looked', ['ls', '-A', '/data']), '')

    t.match(await run('filled-again', filled), /^3\d{4}$/m)
    await runtime.removeVolume(volume)
    t.same(await runtime.volumes({ projectId }), [])
  }
)

test('work is done so much at once, one of each owner, and the owners take turns', async t => {
  const slots = new FairSlots(2)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const add = (owner: string, name: string): Promise<number> =>
    slots.run(owner, async slot => {
      begun.push(name)
      await new Promise<void>(resolve => ends.set(name, resolve))
      return slot
    })
  const all = [add('a', 'a1'), add('a', 'a2'), add('a', 'a3'), add('b', 'b1'), add('c', 'c1'), add('c', 'c2')]
  const next = async (ended: string, expected: readonly string[]): Promise<void> => {
    ends.get(ended)?.()
    await until(() => begun.length >= expected.length, `${expected.at(-1)} to begin`)
    t.same(begun, expected)
  }
  await until(() => begun.length === 2, 'the first two to begin')
  t.same(begun, ['a1', 'b1'])
  await next('a1', ['a1', 'b1', 'a2'])
  await next('a2', ['a1', 'b1', 'a2', 'c1'])
  await next('b1', ['a1', 'b1', 'a2', 'c1', 'a3'])
  await next('a3', ['a1', 'b1', 'a2', 'c1', 'a3'])
  await next('c1', ['a1', 'b1', 'a2', 'c1', 'a3', 'c2'])
  ends.get('c2')?.()
  t.ok((await Promise.all(all)).every(slot => slot === 0 || slot === 1))
})

test('work that fails gives its place to the next one', async t => {
  const slots = new FairSlots(1)
  await t.rejects(
    slots.run('a', async () => {
      throw new Error('broken')
    }),
    /broken/
  )
  t.equal(await slots.run('a', async slot => slot), 0)
})
