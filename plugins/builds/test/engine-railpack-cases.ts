import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type EngineKind, has, linesOf, openEngineLab, settingsOf } from './engine-lab.js'
import { makeFrontEnd } from './stand-in-front-end.js'
import { standIns } from './stand-ins.js'
import { secret, withVariables } from './tool-lab.js'

/** What railpack plans, and a front-end has a build engine build. */
export function testRailpackInEngine(name: string, kind: EngineKind): void {
  void test(`${name}, and what railpack plans for it`, async t => {
    if (!(await requireEngine(t))) return
    const tools = await standIns(t)
    const frontEnd = `busbar-front-end-${randomBytes(4).toString('hex')}:test`
    await makeFrontEnd(t, frontEnd)
    const settings = { ...settingsOf(kind), railpack_frontend: frontEnd }
    const lab = await openEngineLab(t, kind, settings, { PATH: tools.path })
    const admin = await lab.k.as.session()

    await t.test('its front-end builds it, with secrets and a cache of their own', async t => {
      const application = await lab.application(
        'railed',
        {
          'index.html': 'one',
          'front-end.Dockerfile': `FROM ${frontEnd}
WORKDIR /app
RUN --mount=type=secret,id=API_KEY grep -q ^${secret} /run/secrets/API_KEY && echo had it
ARG CACHE_KEY
ARG SECRETS_HASH
ARG NO_CACHE
ARG PLAN_FILE
RUN env > env.txt && date +%s%N > made.txt
${kind.isNew ? 'COPY --from=plan railpack-plan.json .\n' : ''}COPY index.html .
ENTRYPOINT []
CMD ["node", "-e", "require('http').createServer((q, r) => r.end(require('fs').readFileSync('.' + q.url))).listen(8080)"]
`
        },
        { build_type: 'railpack', health_check_path: '/index.html' }
      )
      await withVariables({ lab }, application)
      const read = async (path: string) =>
        await (await fetch(`${(await application.read()).direct_url}/${path}`)).text()
      const hashOf = (variables: string) => /^SECRETS_HASH=([0-9a-f]{64})$/m.exec(variables)?.[1] ?? ''

      const first = await application.deployed()
      t.equal(first.status, 'success', linesOf(first).join('\n'))
      t.equal(first.build_engine, kind.build_engine)
      t.equal(await read('index.html'), 'one')
      t.ok(has(linesOf(first), /^Built by a .* that this project alone uses/), linesOf(first).join('\n'))
      t.ok(has(linesOf(first), /^had it$/), linesOf(first).join('\n'))
      const { argv, env, cwd } = await tools.called('railpack')
      t.match(argv.slice(0, 2), ['prepare', '--plan-out'])
      t.equal(argv.at(-1), cwd)
      t.equal(env.API_KEY, secret)
      const variables = await read('env.txt')
      t.match(variables, new RegExp(`^CACHE_KEY=${application.id}$`, 'm'))
      t.match(variables, /^PLAN_FILE=railpack-plan\.json$/m)
      const hash = hashOf(variables)
      t.notMatch(`${variables}${first.build_logs}${argv.join(' ')}`, secret)
      t.ok(hash !== '' && !String(first.build_logs).includes(hash))
      if (kind.isNew) t.match(JSON.parse(await read('railpack-plan.json')), { secrets: /API_KEY/ })
      const { body: steps } = await admin.get(`${application.path}/deployments/${first.id}/build-steps`)
      t.match(
        steps.find(({ name }: { name: string }) => /RUN env/.test(name)),
        { state: 'done', started_at: String, ended_at: String }
      )

      const made = await read('made.txt')
      await application.push({ 'index.html': 'two' })
      t.equal((await application.deployed()).status, 'success')
      t.equal(await read('index.html'), 'two')
      t.equal(await read('made.txt'), made, 'with the same secrets a step is taken from the cache')
      const changed = { vars: [{ key: 'API_KEY', value: `${secret}-2`, is_secret: true }] }
      t.equal((await admin.put(`${application.path}/env`, changed)).status, 200)
      t.equal((await application.deployed()).status, 'success')
      t.not(await read('made.txt'), made, 'with others it is not')
      t.not(hashOf(await read('env.txt')), hash)

      t.equal((await admin.delete(`${application.path}/cache`)).status, 200)
      const cleared = await application.deployed()
      t.equal(cleared.status, 'success', linesOf(cleared).join('\n'))
      t.match(await read('env.txt'), new RegExp(`^CACHE_KEY=${application.id}-${cleared.id}$`, 'm'))
      t.match(await read('env.txt'), /^NO_CACHE=true$/m)
    })

    await t.test('secrets that the application has not are named', async t => {
      const application = await lab.application('lacking', { 'wants-more': 'x' }, { build_type: 'railpack' })
      t.match(await application.deployed(), {
        status: 'failed',
        error_message: /railpack\.json names secrets that are no variables of the application: MORE; add them/
      })
    })

    await t.test('a front-end that cannot be had is told with the remedy', async t => {
      await lab.k.configure('builds', { ...settings, railpack_frontend: '127.0.0.1:9/front-end:lab' })
      const application = await lab.application('planned', { 'index.html': 'x' }, { build_type: 'railpack' })
      t.match(await application.deployed(), {
        status: 'failed',
        build_engine: kind.build_engine,
        error_message:
          /the front-end 127\.0\.0\.1:9\/front-end:lab, by which railpack builds, cannot be had .*docker pull 127\.0\.0\.1:9/
      })
    })
  })
}
