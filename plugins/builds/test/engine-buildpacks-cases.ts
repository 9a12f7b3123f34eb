import { createHash, randomBytes } from 'node:crypto'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { builders, type EngineKind, execIn, has, linesOf, openEngineLab, settingsOf } from './engine-lab.js'
import { standInPack } from './stand-in-pack.js'
import { secret, valuesOf, volumesOf, withVariables } from './tool-lab.js'

/** An image of the platform's engine with these labels, until the test ends. */
async function labelled(t: Test, name: string, Labels: Readonly<Record<string, string>>): Promise<void> {
  const container = await engine.createContainer({ Image: 'busybox:lab', Labels })
  const [repo = '', tag = ''] = name.split(':')
  await container.commit({ repo, tag })
  await container.remove()
  t.teardown(async () => await engine.getImage(name).remove({ force: true }))
}

/** A platform whose Docker Engines of projects are asked by a pack of ours, which is all that stands in for anything. */
async function openPackLab(t: Test, kind: EngineKind) {
  const id = randomBytes(4).toString('hex')
  const builder = `busbar-builder-of-${id}:test`
  const lifecycle = `0.20.0-${id}`
  await labelled(t, `buildpacksio/lifecycle:${lifecycle}`, {})
  await labelled(t, `busbar-buildpack-of-${id}:test`, {})
  await labelled(t, `busbar-run-image-of-${id}:test`, {})
  await labelled(t, builder, {
    'io.buildpacks.builder.metadata': JSON.stringify({
      stack: { runImage: { image: `busbar-run-image-of-${id}:test` } },
      lifecycle: { version: lifecycle }
    })
  })
  const tools = await standInPack(t)
  const settings = { ...settingsOf(kind), buildpacks_builder: builder, memory_mib: 512 }
  const lab = await openEngineLab(t, kind, settings, { PATH: tools.path })
  const admin = await lab.k.as.session()
  const inEngine = async (...argv: readonly string[]): Promise<string> => {
    const [container] = await builders(lab.projectId)
    const command = ['env', 'DOCKER_HOST=unix:///run/busbar-docker.sock', ...argv]
    return await execIn(container?.Id ?? '', '', command)
  }
  /** Of what builds have made beside caches. */
  const leftInEngine = async (): Promise<string> =>
    await inEngine(
      'sh',
      '-c',
      "docker ps -aq; docker network ls -q --filter name=busbar-pack; docker volume ls -q | grep ^pack-; docker images -q busbar-result; ls /var/lib/builder/work | grep -v '^$'"
    )
  const create = async (slug: string, files: Readonly<Record<string, string>> = {}) =>
    await lab.application(
      slug,
      { 'index.html': slug, ...files },
      {
        build_type: 'buildpacks',
        container_port: 8080
      }
    )
  return { id, lab, admin, tools, settings, inEngine, leftInEngine, create }
}

/** What pack has a Docker Engine of the project build. */
export function testBuildpacksInEngine(name: string, kind: EngineKind): void {
  void test(`${name}, and what pack has it build`, async t => {
    if (!(await requireEngine(t))) return
    const { id, lab, admin, tools, settings, inEngine, leftInEngine, create } = await openPackLab(t, kind)

    await t.test('pack runs in the engine of the project, with what the application has for it', async t => {
      const application = await create('packed', { 'own/buildpack.toml': 'x' })
      const buildpacks = JSON.stringify([`docker://busbar-buildpack-of-${id}:test`, 'own'])
      t.equal((await admin.put(application.path, { custom_buildpacks: buildpacks })).status, 200)
      await withVariables({ lab }, application)
      const first = await application.deployed()
      t.equal(first.status, 'success', linesOf(first).join('\n'))
      t.equal(first.build_engine, kind.build_engine)
      const read = async (path: string): Promise<string> =>
        await (await fetch(`${(await application.read()).direct_url as string}/${path}`)).text()
      t.equal(await read('index.html'), 'packed')

      const lines = linesOf(first)
      t.ok(has(lines, /^Built by a Docker Engine that this project alone uses/), lines.join('\n'))
      t.ok(
        has(lines, /with pack, the builder .* and the buildpacks .* \(512 MiB of memory/),
        lines.join('\n')
      )
      t.ok(has(lines, /^===> BUILDING by version-1$/), lines.join('\n'))
      t.match(first.build_logs, /"stream":"stderr","msg":"a word on stderr/)
      t.match(first.build_logs, /pack is not given LD_PRELOAD/)
      t.notMatch(first.build_logs, secret)

      const argv = (await read('argv.txt')).trim().split('\n')
      t.match(argv[0], /^busbar-result:/)
      const own = /^busbar-base:[0-9a-f]{64}$/
      t.match(valuesOf(argv, '--builder'), [own], 'by no name that pack could trust')
      t.match(valuesOf(argv, '--run-image'), [own])
      t.match(valuesOf(argv, '--lifecycle-image'), [own])
      t.match(valuesOf(argv, '--buildpack'), [/^docker:\/\/busbar-base:[0-9a-f]{64}$/, 'own'])
      t.same(valuesOf(argv, '--pull-policy'), ['if-not-present'])
      t.notOk(argv.includes('--clear-cache') || argv.includes('--trust-builder'))
      t.same(valuesOf(argv, '--env').sort(), [
        'API_KEY',
        'DOCKER_HOST=tcp://203.0.113.1:1',
        'GREETING',
        'MULTILINE',
        'NODE_OPTIONS=--max-old-space-size=512'
      ])
      t.notMatch(argv.join(' '), secret)

      const phase = await read('phase.txt')
      t.match(phase, /^1$/m)
      t.match(phase, /\/steps\//, 'in the group that the limits of the build hold for')
      t.match(phase, /inet 192\.0\.2\.(1[3-9]\d|2\d\d)\//, 'in a network of its own')
      t.equal(await leftInEngine(), '')

      const image = await engine.getImage(first.image_tag).inspect()
      t.match(image.Config.Labels, { 'application-id': application.id, 'project-id': lab.projectId })
      t.ok(image.Config.Env.includes('MADE_BY=pack'))
      t.same(await volumesOf(application.id), [], 'nothing of it is on the engine of the platform')

      await t.test(
        'what it keeps is there for the next build, is counted, and goes when it is cleared',
        async t => {
          t.equal((await application.deployed()).status, 'success')
          t.match(await read('phase.txt'), /^2$/m)
          const before = (await admin.get(`${application.path}/cache`)).body.total_bytes as number
          t.ok(before > 2 * 2 ** 20, String(before))
          t.equal((await admin.delete(`${application.path}/cache`)).status, 200)
          t.ok(((await admin.get(`${application.path}/cache`)).body.total_bytes as number) < before / 2)
          t.equal((await application.deployed()).status, 'success')
          t.match(await read('phase.txt'), /^1$/m)
          t.match(await read('argv.txt'), /^--clear-cache$/m)
        }
      )

      await t.test('another version of pack takes the place of the former one', async t => {
        await tools.replace('version-2')
        const next = await application.deployed()
        t.equal(next.status, 'success', linesOf(next).join('\n'))
        t.ok(has(linesOf(next), /^===> BUILDING by version-2$/), linesOf(next).join('\n'))
        t.match(await inEngine('ls', '/var/lib/builder/tools'), /^pack-[0-9a-f]{64}$/)
        await tools.replace('none; exit 3')
        t.match(await application.deployed(), {
          status: 'failed',
          error_message:
            /pack on the machine of the platform does not run in the build engine of this project: .*to classic/
        })
        await tools.replace('version-2')
      })

      await t.test('caches are trimmed as those of other builds, but for what a build uses', async t => {
        const { body } = await admin.get(application.path)
        t.equal(body.id, application.id)
        const caches = async () =>
          await inEngine('docker', 'volume', 'ls', '-q', '--filter', 'name=busbar-cnb')
        const short = application.id.slice(0, 8)
        t.match(await caches(), new RegExp(`busbar-cnb-cache-${short}\\s+busbar-cnb-launch-${short}`))
        await lab.k.configure('builds', { ...settings, build_cache_mib: 1 })
        t.equal((await application.deployed()).status, 'success')
        t.notMatch(await caches(), /launch/, 'the one of 2 MiB')
        await lab.k.configure('builds', settings)
      })
    })

    await t.test('a build that is cancelled ends with all that it has asked the engine for', async t => {
      const application = await create('hanging', { behaviour: 'hang' })
      const { id: deployment } = await application.deploy()
      await until(
        async () => (await inEngine('docker', 'ps', '-q', '--filter', 'label=author=pack')) !== '',
        'its container to run',
        60_000
      )
      t.equal((await admin.delete(`${application.path}/cache`)).status, 409)
      t.equal(
        (await admin.post(`${application.path}/deployments/${deployment as string}/cancel`)).status,
        202
      )
      t.match(await application.ended(deployment), { status: 'failed', error_message: 'cancelled' })
      t.equal(await leftInEngine(), '')
      const [container] = await builders(lab.projectId)
      t.equal(await execIn(container?.Id ?? '', 'sleep 1000'), '0')
    })

    await t.test('what a killed build has left goes before the next one', async t => {
      const application = await create('left')
      await inEngine(
        'sh',
        '-c',
        'docker network create busbar-pack-gone && docker run -d --label author=pack --network busbar-pack-gone -v pack-layers-x:/x busybox:lab sleep 1000; docker volume create pack-app-y; docker tag busybox:lab pack.local/builder/abc:latest; mkdir /var/lib/builder/work/gone'
      )
      const [container] = await builders(lab.projectId)
      await engine.getContainer(container?.Id ?? '').stop({ t: 5 })
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', linesOf(deployed).join('\n'))
      t.equal(await leftInEngine(), '')
      t.equal(await inEngine('docker', 'images', '-q', 'pack.local/*/*'), '')
    })
  })
}

/** Builds by pack that fail, and those of others. */
export function testBuildpacksRefusedInEngine(name: string, kind: EngineKind): void {
  void test(`${name}, and what pack cannot have it build`, async t => {
    if (!(await requireEngine(t))) return
    const { lab, admin, settings, inEngine, leftInEngine, create } = await openPackLab(t, kind)

    await t.test('what fails is told as what it is', async t => {
      const failing = await create('failing', { behaviour: 'fail' })
      t.match(await failing.deployed(), {
        status: 'failed',
        error_message: /pack ended with exit code 7: ERROR: failed to detect: no buildpack fits/
      })
      await failing.push({ behaviour: 'none' })
      t.match(await failing.deployed(), {
        status: 'failed',
        error_message: /pack ended without an error, but the Docker Engine has no image/
      })
      await failing.push({ behaviour: 'greedy' })
      t.match(await failing.deployed(), {
        status: 'failed',
        error_message:
          /pack build was killed \(exit code 137\), most likely because it needed more memory than the 512 MiB/
      })
      t.equal(await leftInEngine(), '')
      t.equal((await admin.put(failing.path, { builder_image: '127.0.0.1:9/builder:lab' })).status, 200)
      t.match(await failing.deployed(), {
        status: 'failed',
        error_message:
          /pack builds with the image 127\.0\.0\.1:9\/builder:lab, which did not come .*docker pull 127/
      })
      const own = createHash('sha256').update('127.0.0.1:9/builder:lab').digest('hex')
      await inEngine(
        'sh',
        '-c',
        `docker tag "$(docker images -q busbar-base | head -n 1)" busbar-pulled:${own}`
      )
      await failing.push({ behaviour: 'none of these' })
      const deployed = await failing.deployed()
      t.equal(deployed.status, 'success', 'no registry is asked for what the engine has pulled before')
    })

    await t.test(
      'an image that was built for another application is no builder and no buildpack',
      async t => {
        const other = await create('other')
        const { image_tag: foreign } = await other.deployed()
        const choosing = await create('choosing')
        for (const choice of [
          { builder_image: foreign },
          { builder_image: null, custom_buildpacks: JSON.stringify([`docker://${foreign as string}`]) }
        ]) {
          t.equal((await admin.put(choosing.path, choice)).status, 200)
          t.match(await choosing.deployed(), {
            status: 'failed',
            error_message: /was built for another application/
          })
        }
      }
    )

    await t.test('another project has an engine of its own, with nothing of this one', async t => {
      const other = await lab.otherProject(
        'elsewhere',
        { 'index.html': 'x' },
        { build_type: 'buildpacks', container_port: 8080 }
      )
      const deployed = await other.deployed()
      t.equal(deployed.status, 'success', linesOf(deployed).join('\n'))
      t.notMatch(await inEngine('docker', 'volume', 'ls', '-q'), other.id.slice(0, 8))
    })

    await t.test(
      'where a BuildKit is asked for, it is still a Docker Engine, or the way without',
      async t => {
        const application = await create('preferring')
        await lab.k.configure('builds', { ...settings, build_engine: 'buildkit' })
        const first = await application.deployed()
        t.match(first, { status: 'success', build_engine: kind.build_engine }, linesOf(first).join('\n'))
        t.ok(
          has(
            linesOf(first),
            /Docker Engine that this project alone uses .*; pack needs a Docker Engine, which a BuildKit is not$/
          ),
          linesOf(first).join('\n')
        )
        const none = '127.0.0.1:1/none:1'
        await lab.k.configure('builds', { ...settings, build_engine: 'buildkit', dockerd_image: none })
        const lines = linesOf(await application.deployed())
        t.ok(
          has(
            lines,
            /^Built by pack, on the Docker Engine that runs the applications, where .*: Docker Engine needs the image 127\.0\.0\.1:1\/none:1/
          ),
          lines.join('\n')
        )
        await lab.k.configure('builds', { ...settings, dockerd_image: none })
        t.match(await application.deployed(), {
          status: 'failed',
          error_message:
            /there is no build engine of the kind that build_engine of the builds plugin asks for/
        })
      }
    )
  })
}
