import { allow, definePlugin, object, Type } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

type Then = (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void
const thenable = (then: Then): Promise<{ n: number }> => ({ then }) as unknown as Promise<{ n: number }>

let lateCalls = 0
const odd: Readonly<Record<string, () => Promise<{ n: number }>>> = {
  'calls-both': () =>
    thenable((resolve, reject) => {
      resolve({ n: 1 })
      resolve({ n: 2 })
      reject(new Error('and an error'))
      throw new Error('and another')
    }),
  throws: () =>
    thenable(() => {
      throw null
    }),
  'fails-twice': () =>
    thenable((resolve, reject) => {
      reject(undefined)
      reject(new Error('again'))
      resolve({ n: 1 })
    }),
  'cannot-be-read': () =>
    ({
      // biome-ignore lint/suspicious/noThenProperty: that is what is tested
      get then() {
        throw undefined
      }
    }) as unknown as Promise<{ n: number }>,
  late: () =>
    thenable((resolve, reject) => {
      const timer = setInterval(() => {
        lateCalls += 1
        resolve({ n: lateCalls })
        reject(new Error('too late'))
        if (lateCalls === 3) clearInterval(timer)
      }, 700)
    })
}

const plugin = {
  manifest: { id: 'odd' },
  definition: definePlugin({
    id: 'odd',
    routes(route) {
      for (const [name, handler] of Object.entries(odd))
        route({
          method: 'GET',
          url: `/api/odd/${name}`,
          summary: 's',
          access: allow.public('a test'),
          timeoutMs: 200,
          schema: { response: { 200: object({ n: Type.Integer() }) } },
          handler
        })
    }
  })
}

test('what is no promise and looks like one is answered once, whatever it calls', async t => {
  const kernel = await createTestKernel({ inline: [plugin] })
  t.teardown(async () => await kernel.close())
  const get = async (name: string) => await kernel.as.anonymous().get(`/api/odd/${name}`)
  const first = await get('calls-both')
  t.same([first.status, first.body], [200, { n: 1 }])
  for (const name of ['throws', 'fails-twice', 'cannot-be-read'])
    t.match(await get(name), { status: 500, body: { code: 'E_INTERNAL' } }, name)
  t.match(await get('late'), { status: 503, body: { code: 'E_TIMEOUT' } })
  await until(() => lateCalls === 3, 'the handler calls after its time')
  t.match(await get('calls-both'), { status: 200 }, 'the platform serves on')
})
