import { allow, definePlugin, object, Type } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

test('a request that the guard still decides about when its plugin is turned off is served before that stops', async t => {
  const happened: string[] = []
  const late = definePlugin({
    id: 'late',
    start: ({ onStop }) => {
      onStop(() => void happened.push('stopped'))
      return {}
    },
    routes(route) {
      route({
        method: 'GET',
        url: '/api/late/now',
        summary: 'Get Now',
        access: allow.token('read', { project: 'none' }),
        schema: { response: { 200: object({ ok: Type.Boolean() }) } },
        handler: () => {
          happened.push('served')
          return { ok: true }
        }
      })
    }
  })
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'late' }, definition: late }]
  })
  t.teardown(() => k.close())
  const token = await k.as.token('read')
  // Not within the transaction, which would see the same again and again.
  const isWaiting = async (): Promise<boolean> =>
    (
      await k.query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
      )
    ).length > 0
  const { answer, turnedOff } = await k.transaction(async tx => {
    await k.query('lock table identity.access_token in access exclusive mode', [], tx)
    const answer = token.get('/api/late/now')
    await until(isWaiting, 'the token to be looked up')
    const turnedOff = k.disable('late')
    await until(
      async () => (await k.as.anonymous().get('/api/late/now')).body.code === 'E_PLUGIN_OFF',
      'the plugin to leave the route table'
    )
    return { answer, turnedOff }
  })
  t.match(await answer, { status: 200, body: { ok: true } })
  await turnedOff
  t.same(happened, ['served', 'stopped'])
})
