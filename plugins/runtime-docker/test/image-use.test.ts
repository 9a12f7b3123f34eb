import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'tap'
import { pack } from 'tar-stream'
import { layerSizes } from '../layer-sizes.js'
import { engineTest, startLab } from './lab.js'

const mebi = 2 ** 20
const forever = new AbortController().signal

/** `made`: the oldest first, each with its size. */
const sizes = (layers: number, made: ReadonlyArray<readonly [string, number]>, all: number) =>
  layerSizes(
    Array.from({ length: layers }, (_, index) => `sha256:${index}`),
    made.map(([CreatedBy, Size]) => ({ CreatedBy, Size })).reverse(),
    all
  ).map(({ bytes }) => bytes)

test('the sizes of layers are told by the lines of the history that have made one', async t => {
  t.same(
    sizes(
      3,
      [
        ['/bin/sh -c #(nop) ADD file:abc in / ', 50],
        ['/bin/sh -c #(nop)  CMD ["sh"]', 0],
        ['/bin/sh -c #(nop) WORKDIR /app', 0],
        ['ENV COLOUR=blue', 0],
        ['RUN /bin/sh -c npm ci # buildkit', 700]
      ],
      750
    ),
    [50, 0, 700]
  )
  t.same(
    sizes(
      2,
      [
        ['ADD one', 5],
        ['RUN true', 0],
        ['COPY two', 7],
        ['COPY nothing', 0]
      ],
      12
    ),
    [5, 7],
    'where that does not come out even, by what is not empty'
  )
  t.same(sizes(3, [['CMD ["/only"]', 0]], 40), [0, 0, 40], 'what it leaves out is the topmost’s')
  t.same(sizes(1, [], 40), [40])
  t.same(sizes(0, [['CMD ["/only"]', 0]], 40), [])
  const [[one, two], [same, other]] = [
    layerSizes(['sha256:a', 'sha256:b'], [], 1),
    layerSizes(['sha256:a', 'sha256:c'], [], 1)
  ]
  t.equal(one?.id, same?.id)
  t.not(two?.id, other?.id)
  t.not(layerSizes(['sha256:b'], [], 1)[0]?.id, two?.id, 'what is below counts')
})

engineTest('what images are made of, and what they share', async t => {
  const { runtime, docker, projectId, spec } = startLab(t)
  const owner = { projectId }
  const tag = (name: string) => `lab-${projectId}:${name}`
  const build = async (name: string, ...steps: readonly string[]) => {
    const tar = pack()
    tar.entry({ name: 'Dockerfile' }, ['FROM busybox:lab', ...steps, ''].join('\n'))
    tar.finalize()
    return await runtime.build(
      Readable.from(tar),
      { tag: tag(name), dockerfile: 'Dockerfile', buildArgs: {}, owner, memoryBytes: 256 * mebi, cpus: 1 },
      { onLine: () => {}, signal: forever }
    )
  }
  const file = (mib: number) => `RUN dd if=/dev/urandom of=/file${mib} bs=1M count=${mib}`
  const one = await build('one', file(3), 'WORKDIR /made', file(5))
  await build('two', file(3), 'WORKDIR /made', file(2))
  const uses = async (allMs = 30_000) => await runtime.imageUse({ allMs })
  const found = async (name: string) => (await uses()).find(({ names }) => names.includes(tag(name)))
  const mibs = (parts: ReadonlyArray<{ readonly bytes: number }> = []) =>
    parts.map(({ bytes }) => Math.round(bytes / mebi)).filter(mib => mib > 0)

  const [first, second, base] = [
    await found('one'),
    await found('two'),
    (await uses()).find(({ names }) => names.includes('busybox:lab'))
  ]
  t.same([first?.owner, second?.owner, base?.owner], [owner, owner, undefined])
  t.same(mibs(first?.parts).slice(-2), [3, 5])
  t.same(mibs(second?.parts).slice(-2), [3, 2])
  const idsOf = (use: typeof first) => new Set(use?.parts.map(({ id }) => id))
  const shared = second?.parts.filter(({ id }) => idsOf(first).has(id))
  t.same(mibs(shared), [...mibs(base?.parts), 3])
  t.equal(
    first?.parts.reduce((sum, { bytes }) => sum + bytes, 0),
    one.sizeBytes
  )

  const id = await runtime.create(
    spec('using', await runtime.ensureNetwork({ id: projectId, slug: projectId.slice(0, 8) }), {
      image: tag('two')
    })
  )
  t.same((await found('two'))?.containerIds, [id])
  await runtime.remove(id)

  // Taken in again, it continues no other image.
  const archive = await buffer(await runtime.save(tag('one'), forever))
  await runtime.removeImage(tag('one'))
  await runtime.clearBuildCache(owner)
  for await (const _ of await docker.loadImage(Readable.from([archive]))) {
    // Read to its end.
  }
  const again = await found('one')
  t.equal((await docker.listImages({ all: true })).find(({ Id }) => Id === again?.id)?.ParentId, '')
  t.same(mibs(again?.parts), mibs(first?.parts))
  t.same(
    again?.parts.filter(({ id: part }) => idsOf(base).has(part)),
    base?.parts
  )
})
