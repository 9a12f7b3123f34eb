import { definePlugin, list, maybe, object, Type } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

const strict = {
  manifest: { id: 'strict' },
  definition: definePlugin({
    id: 'strict',
    config: object({
      port: Type.Integer({ default: 1 }),
      mail: maybe(object({ host: Type.String() })),
      hosts: maybe(list(object({ name: Type.String() }))),
      labels: maybe(Type.Record(Type.String(), Type.String()))
    }),
    start: () => ({})
  })
}
const plain = { manifest: { id: 'plain' }, definition: definePlugin({ id: 'plain', start: () => ({}) }) }

test('a setting that a plugin does not know is refused by its name, and the nearest one is offered', async t => {
  const k = await createTestKernel({ inline: [strict, plain] })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const refused: ReadonlyArray<readonly [plugin: string, config: object, reason: RegExp]> = [
    ['strict', { prot: 7 }, /"prot" is unknown; did you mean "port"\? known are port, mail, hosts, labels/],
    ['strict', { port: 7, colour: 'red', size: 1 }, /"colour" is unknown; known are .*; "size" is unknown/],
    ['strict', { mail: { hsot: 'a' } }, /"hsot" is unknown; did you mean "host"\?/],
    ['strict', { hosts: [{ name: 'a', nam: 'b' }] }, /"nam" is unknown; did you mean "name"\?/],
    ['plain', { anything: 1 }, /"anything" is unknown; there are none to give/]
  ]
  for (const [plugin, config, reason] of refused) {
    t.match(
      await admin.put(`/api/plugins/${plugin}/config`, config),
      { status: 400, body: { code: 'E_PLUGIN_CONFIG', error: reason } },
      JSON.stringify(config)
    )
    t.match((await admin.get(`/api/plugins/${plugin}`)).body, { config: {}, state: 'running' })
  }
  t.equal(
    (
      await admin.put('/api/plugins/strict/config', {
        port: 7,
        labels: { any: 'thing' },
        mail: { host: 'h' }
      })
    ).status,
    200
  )
  t.equal((await admin.put('/api/plugins/plain/config', {})).status, 200)
  await k.stop()
  await k.kernel.close()
  const again = await createTestKernel({
    inline: [
      {
        ...strict,
        definition: definePlugin({
          id: 'strict',
          config: object({ prt: maybe(Type.Integer()) }),
          start: () => ({})
        })
      },
      plain
    ],
    state: k.state
  })
  t.teardown(() => again.stop())
  t.match((await (await again.as.session()).get('/api/plugins/strict')).body, {
    state: 'misconfigured',
    reason: /"port" is unknown; did you mean "prt"\?/
  })
})
