import { allow, definePlugin, type SseFrame, sse } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

/** Whose frames were asked for, in order. */
const asked: string[] = []
let isOver = false

/** Each frame takes longer than a turn. */
async function* busy(name: string): AsyncGenerator<SseFrame> {
  while (!isOver) {
    asked.push(name)
    for (const end = performance.now() + 11; performance.now() < end; );
    yield { data: 'x' }
  }
}

const plugin = {
  manifest: { id: 'busy' },
  definition: definePlugin({
    id: 'busy',
    routes(route) {
      route({
        method: 'GET',
        url: '/api/busy/:name',
        summary: 's',
        access: allow.token('read', { project: 'none' }),
        handler: ({ params }) => sse(busy(String(params.name)))
      })
    }
  })
}

test("many event streams of one user take no more turns than another's one", async t => {
  const k = await createTestKernel({ inline: [plugin] })
  t.teardown(() => k.close())
  const [many, one] = await Promise.all([k.as.session('many'), k.as.session('one')])
  for (let n = 0; n < 30; n++) (await many.open('/api/busy/many')).resume()
  ;(await one.open('/api/busy/one')).resume()
  const start = asked.length
  const times = (): number => asked.slice(start).filter(name => name === 'one').length
  await until(() => times() > 10, 'the only stream of a user is read', 60_000)
  isOver = true
  const between = asked
    .slice(start)
    .join(' ')
    .split('one')
    .slice(2, -1)
    .map(others => others.split(' ').filter(Boolean).length)
  t.ok(Math.max(...between) <= 3, `${between.join(' ')} frames of the other user before each`)
})
