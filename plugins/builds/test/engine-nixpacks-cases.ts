import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { type EngineKind, has, linesOf, openEngineLab } from './engine-lab.js'
import { standIns } from './stand-ins.js'
import { secret, valuesOf, withVariables } from './tool-lab.js'

/** What nixpacks has a build engine build. */
export function testNixpacksInEngine(name: string, kind: EngineKind): void {
  void test(`${name}, and what nixpacks has it build`, async t => {
    if (!(await requireEngine(t))) return
    const tools = await standIns(t)
    const lab = await openEngineLab(t, kind, {}, { PATH: tools.path })
    const admin = await lab.k.as.session()
    const source = (version: string) => ({
      'index.html': version,
      // Whatever an application has there: the program's own is used.
      '.nixpacks': { symlink: '/etc' },
      '.dockerignore': '.*\nleft-out\n',
      'left-out': 'x',
      'make.sh':
        'date >> /kept/builds\nwc -l < /kept/builds\ncp /kept/builds builds.txt\nenv > env.txt\nfind / -xdev -name build.sh -o -name left-out > found.txt\n'
    })

    await t.test('nixpacks writes a Dockerfile, and the build engine builds it', async t => {
      const application = await lab.application('nixed', source('one'), { build_type: 'nixpacks' })
      await withVariables({ lab }, application)
      const first = await application.deployed()
      t.equal(first.status, 'success', linesOf(first).join('\n'))
      t.equal(first.build_engine, kind.build_engine)
      const { direct_url: url } = await application.read()
      const read = async (path: string) => await (await fetch(`${url}/${path}`)).text()
      t.equal(await read('index.html'), 'one')
      t.equal(await read('found.txt'), '', 'neither what is ignored nor the command of nixpacks')

      const lines = linesOf(first)
      t.ok(has(lines, /^Built by a .* that this project alone uses/), lines.join('\n'))
      t.ok(has(lines, /nixpacks \(1024 MiB of memory/), lines.join('\n'))
      const { body: steps } = await admin.get(`${application.path}/deployments/${first.id}/build-steps`)
      t.match(
        steps.find(({ name }: { name: string }) => /RUN .*sh make\.sh/.test(name)),
        { state: 'done', started_at: String, ended_at: String }
      )
      t.match((await engine.getImage(first.image_tag).inspect()).Config.Labels, {
        'application-id': application.id
      })

      const { argv, env, cwd } = await tools.called('nixpacks', 'build')
      t.match(argv.slice(0, 3), ['build', cwd, '--out'])
      t.same(valuesOf(argv, '--cache-key'), [application.id])
      t.notOk('API_KEY' in env || 'API_KEY' in (await tools.called('nixpacks', 'plan')).env)
      const variables = await read('env.txt')
      t.match(variables, /^GREETING=a, b = c$/m)
      t.match(variables, /^NIXPACKS_METADATA=lab$/m)
      t.notMatch(`${variables}${first.build_logs}${argv.join(' ')}`, secret)
      t.match(first.build_logs, /nixpacks is not given API_KEY/)

      await application.push({ 'index.html': 'two' })
      const second = await application.deployed()
      t.equal(second.status, 'success', linesOf(second).join('\n'))
      t.ok(has(linesOf(second), /is taken from the cache/), linesOf(second).join('\n'))
      t.equal(
        (await read('builds.txt')).split('\n').length,
        3,
        'what a step keeps is there for the next build'
      )

      t.equal((await admin.delete(`${application.path}/cache`)).status, 200)
      t.equal((await application.deployed()).status, 'success')
      t.ok((await tools.called('nixpacks', 'build')).argv.includes('--no-cache'))
    })

    await t.test('a step that fails, and a program that writes nothing, are told as such', async t => {
      const application = await lab.application(
        'failing',
        { ...source('one'), 'make.sh': 'exit 3' },
        { build_type: 'nixpacks' }
      )
      t.match(await application.deployed(), {
        status: 'failed',
        error_message: /the build stopped: .*sh make\.sh ended with exit code 3/
      })
      await tools.behave('none')
      t.match(await application.deployed(), {
        status: 'failed',
        error_message:
          /nixpacks ended without an error, but its Dockerfile cannot be used: there is none at \.nixpacks\/Dockerfile/
      })
      await tools.behave('build')
    })
  })
}
