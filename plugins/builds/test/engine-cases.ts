import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import type { GitFiles } from '../../../lab/git-server.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { builders, type EngineKind, execIn, linesOf, openEngineLab, settingsOf } from './engine-lab.js'

const has = (all: readonly string[], pattern: RegExp): boolean => all.some(line => pattern.test(line))
const port = 'EXPOSE 8080\nCMD ["httpd", "-f", "-p", "8080"]\n'

/** A repository whose application answers `version` on 8080. */
const sample = (version: string): GitFiles => ({
  'index.html': version,
  Dockerfile: `FROM busybox:lab\nWORKDIR /app\nCOPY . .\n${port}`
})

/** What holds of each kind of build engine. */
export function testBuildEngine(name: string, kind: EngineKind): void {
  void test(`${name}, for one project`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)

    await t.test('what it builds is served, and built again from its cache', async t => {
      const application = await lab.application('isolated', sample('one'))
      const first = await application.deployed()
      t.equal(first.status, 'success', JSON.stringify(first.error_message))
      t.equal(await (await fetch((await application.read()).direct_url)).text(), 'one')
      const lines = linesOf(first)
      t.ok(has(lines, /^Built by a .* that this project alone uses/), lines.join('\n'))
      t.ok(has(lines, /^\[.*\d\/3\] WORKDIR \/app/), lines.join('\n'))

      await application.push(sample('two'))
      const second = await application.deployed()
      t.equal(second.status, 'success', JSON.stringify(second.error_message))
      t.equal(await (await fetch((await application.read()).direct_url)).text(), 'two')
      t.ok(has(linesOf(second), /is taken from the cache/), linesOf(second).join('\n'))

      t.match(first.build_engine, kind.build_engine)
      const steps = (
        await (await lab.k.as.session()).get(`${application.path}/deployments/${second.id}/build-steps`)
      ).body
      t.match(
        steps.find(({ name }: { name: string }) => /WORKDIR/.test(name)),
        { state: 'cached', started_at: String, ended_at: String }
      )
      t.match(
        steps.find(({ name }: { name: string }) => /COPY/.test(name)),
        { state: 'done', started_at: String, ended_at: String }
      )
      t.notOk(steps.some(({ name }: { name: string }) => /internal/.test(name)))

      const [builder] = await builders(lab.projectId)
      const seen = await engine.getContainer(builder?.Id ?? '').inspect()
      t.equal(Object.keys(seen.NetworkSettings.Networks).length, 1)
      t.notOk(seen.HostConfig.Privileged)
      t.strictSame(seen.HostConfig.Binds ?? [], [])
      t.notOk(seen.Mounts.some(({ Source, Destination }) => /docker\.sock/.test(`${Source} ${Destination}`)))
      t.ok((seen.HostConfig.Memory ?? 0) > 0 && (seen.HostConfig.PidsLimit ?? 0) > 0)
    })

    await t.test('the bridge that its steps are behind learns nothing', async t => {
      const [builder] = await builders(lab.projectId)
      const told = await execIn(builder?.Id ?? '', '', [
        'sh',
        '-c',
        'cat /sys/class/net/*/bridge/ageing_time'
      ])
      t.match(told, /^0(\s+0)*$/)
      for (const [setting, value] of [
        ['ipv4/conf/*/rp_filter', '1'],
        ['ipv6/conf/*/disable_ipv6', '1']
      ] as const) {
        const values = await execIn(builder?.Id ?? '', '', [
          'sh',
          '-c',
          `cat /proc/sys/net/${setting} | sort -u`
        ])
        t.equal(values, value, setting)
      }
    })

    await t.test('secrets are there for the steps that mount them, and nowhere else', async t => {
      const application = await lab.application('secretive', {
        ...sample('secret'),
        Dockerfile: `FROM busybox:lab
WORKDIR /app
COPY . .
RUN --mount=type=secret,id=TOKEN test "$(wc -c < /run/secrets/TOKEN)" = 19 && echo had it
RUN --mount=type=cache,target=/kept date > /kept/x && ls /kept
RUN test ! -e /run/secrets/TOKEN && ! env | grep -q very-secret
${port}`
      })
      const put = await (await lab.k.as.session()).put(`${application.path}/env`, {
        vars: [{ key: 'TOKEN', value: 'a-very-secret-value', is_secret: true }]
      })
      t.equal(put.status, 200)
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      t.ok(has(linesOf(deployed), /^had it$/))
      t.notMatch(deployed.build_logs, /a-very-secret-value/)
      const history = await engine.getImage(deployed.image_tag).history()
      t.notMatch(JSON.stringify(history), /a-very-secret-value/)
    })

    await t.test('static sites are built in it, and tell what they lack', async t => {
      const site = { build_type: 'static', container_port: null, health_check_path: '/' }
      const plain = await lab.application(
        'plain-site',
        { 'public/index.html': 'as it is', 'public/.env': 'x' },
        site
      )
      const first = await plain.deployed()
      t.equal(first.status, 'success', JSON.stringify(first.error_message))
      t.ok(has(linesOf(first), /^Built by a .* that this project alone uses/), linesOf(first).join('\n'))
      const { direct_url } = await plain.read()
      t.equal(await (await fetch(direct_url)).text(), 'as it is')
      for (const path of ['.env', '.dockerignore', '.busbar.Dockerfile'])
        t.equal((await fetch(`${direct_url}/${path}`)).status, 404, path)

      const script = (folder: string) =>
        `import { mkdirSync, writeFileSync } from 'node:fs'; mkdirSync('${folder}'); writeFileSync('${folder}/index.html', 'made')`
      const built = await lab.application(
        'built-site',
        { 'package.json': '{"scripts":{"build":"node build.mjs"}}', 'build.mjs': script('web') },
        site
      )
      t.match(await built.deployed(), {
        status: 'failed',
        error_message:
          /npm run build left nothing to serve: .*found were: build\.mjs, package-lock\.json, package\.json, web\//
      })
      await built.push({ 'build.mjs': script('dist') })
      const second = await built.deployed()
      t.equal(second.status, 'success', JSON.stringify(second.error_message))
      t.equal(await (await fetch((await built.read()).direct_url)).text(), 'made')
    })

    await t.test('a step sees nothing of the daemon, and has no IPv6', async t => {
      const application = await lab.application('curious', {
        ...sample('curious'),
        Dockerfile: `FROM busybox:lab
RUN ls /dev /run /var/run && find / -xdev -type s && test -z "$(find / -xdev -type s; find /dev -type s)"
RUN for f in /proc/sys/net/ipv6/conf/eth*/disable_ipv6; do test ! -e $f || test $(cat $f) = 1 || exit 1; done
RUN ! ip addr show dev eth0 | grep inet6 && ip addr show dev eth0 | grep 'inet 192.0.2.'
${port}`
      })
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', linesOf(deployed).join('\n'))
    })

    await t.test(
      'an engine whose daemon has more memory than it may have from now on is begun anew',
      async t => {
        const application = await lab.application('smaller', sample('smaller'))
        t.equal((await application.deployed()).status, 'success')
        const [builder] = await builders(lab.projectId)
        await execIn(builder?.Id ?? '', '', [
          'sh',
          '-c',
          // In memory that belongs to the container as the daemon's does.
          'mkdir -p /held && mount -t tmpfs -o size=700m tmpfs /held && dd if=/dev/zero of=/held/x bs=1M count=600'
        ])
        await lab.k.configure('builds', { ...settingsOf(kind), memory_mib: 256 })
        await application.push(sample('even smaller'))
        const deployed = await application.deployed()
        t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
        await lab.k.configure('builds', settingsOf(kind))
      }
    )

    await t.test('an engine whose network has gone meanwhile is made anew, and keeps its cache', async t => {
      const application = await lab.application('offline', sample('offline'))
      t.equal((await application.deployed()).status, 'success')
      const [builder] = await builders(lab.projectId)
      const container = engine.getContainer(builder?.Id ?? '')
      const [network = ''] = Object.keys((await container.inspect()).NetworkSettings.Networks)
      await container.stop({ t: 1 })
      await engine.getNetwork(network).remove()
      await application.push(sample('online'))
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      t.ok(has(linesOf(deployed), /WORKDIR .* is taken from the cache|is taken from the cache/))
    })

    if (kind.isNew)
      await t.test('heredocs, linked copies and a syntax line need no download', async t => {
        const application = await lab.application('modern', {
          ...sample('modern'),
          Dockerfile: `# syntax=docker/dockerfile:1
FROM busybox:lab AS files
COPY <<FILE /made
made here
FILE
FROM busybox:lab
WORKDIR /app
COPY --link . .
COPY --link --chown=1000:1000 --from=files /made /made
RUN <<SCRIPT
set -e
grep 'made here' /made
SCRIPT
${port}`
        })
        const deployed = await application.deployed()
        t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      })

    await t.test('a step that takes too much memory ends its own build', async t => {
      const application = await lab.application('hungry', {
        ...sample('hungry'),
        Dockerfile: `FROM busybox:lab\nRUN tail /dev/zero\n${port}`
      })
      t.match(await application.deployed(), { status: 'failed', error_message: /killed \(exit code 137\)/ })
      await application.push(sample('sated'))
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
    })

    await t.test('a step that takes every process leaves the engine some', async t => {
      const application = await lab.application('bomb', {
        ...sample('bomb'),
        Dockerfile: `FROM busybox:lab
RUN fill() { while true; do sleep 4322 & done; }; trap "" TERM INT; (fill) 2>/dev/null; echo filled; exec sleep 4321
${port}`
      })
      const { id } = await application.deploy()
      const path = `${application.path}/deployments/${id}`
      const admin = await lab.k.as.session()
      await until(
        async () => /filled\\?"/.test((await admin.get(path)).body.build_logs ?? ''),
        'the step has taken every process'
      )
      const [builder] = await builders(lab.projectId)
      const many = Number(await execIn(builder?.Id ?? '', 'sleep 4322'))
      // Its memory may end first.
      t.ok(many > 1000, `it has ${many}`)
      t.equal((await admin.post(`${path}/cancel`, {})).status, 202)
      t.match(await application.ended(id), { status: 'failed', error_message: /cancel/ })
      t.equal(await execIn(builder?.Id ?? '', 'sleep 4322'), '0')
      await application.push(sample('calm'))
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      const [same] = await builders(lab.projectId)
      t.equal(same?.Id, builder?.Id, 'the engine was neither replaced')
      t.equal(same?.State, 'running', 'nor stopped')
    })

    await t.test('a build that is cancelled has ended', async t => {
      const application = await lab.application('endless', {
        ...sample('endless'),
        Dockerfile: `FROM busybox:lab\nRUN trap "" TERM INT; echo waiting; while true; do sleep 4321; done\n${port}`
      })
      const { id } = await application.deploy()
      const path = `${application.path}/deployments/${id}`
      const admin = await lab.k.as.session()
      await until(
        async () => /waiting\\?"/.test((await admin.get(path)).body.build_logs ?? ''),
        'the step runs'
      )
      const [builder] = await builders(lab.projectId)
      t.match(await execIn(builder?.Id ?? '', 'sleep 4321'), /[1-9]/)
      t.equal((await admin.post(`${path}/cancel`, {})).status, 202)
      t.match(await application.ended(id), { status: 'failed', error_message: /cancel/ })
      await until(async () => (await execIn(builder?.Id ?? '', 'sleep 4321')) === '0', 'the step has ended')
    })

    await t.test('what another project builds is nowhere in it', async t => {
      const own = await lab.application('own', { ...sample('own'), 'marker-of-one.txt': 'x' })
      t.equal((await own.deployed()).status, 'success')
      const other = await lab.otherProject('other', { ...sample('other'), 'marker-of-two.txt': 'x' })
      t.equal((await other.deployed()).status, 'success')
      const [builder] = await builders(lab.projectId)
      const names = await execIn(builder?.Id ?? '', '', ['find', '/var/lib/builder', '-name', 'marker-of-*'])
      t.match(names, /marker-of-one/)
      t.notMatch(names, /marker-of-two/)
    })

    // An older one takes minutes to put such variables in.
    if (kind.isNew)
      await t.test('an image that is refused leaves its engine free', async t => {
        const doubled = (name: string, of: string): string => `ARG ${name}=${of.repeat(16)}`
        const application = await lab.application('endless-labels', {
          ...sample('endless labels'),
          Dockerfile: [
            'FROM busybox:lab',
            `ARG A0=${'x'.repeat(60)}`,
            doubled('A1', '$A0'),
            doubled('A2', '$A1'),
            doubled('A3', '$A2'),
            `LABEL ${['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'].map(key => `${key}=$A3`).join(' ')}`,
            port
          ].join('\n')
        })
        t.match(await application.deployed(), { status: 'failed', error_message: /has \d{7,} bytes/ })
        const [builder] = await builders(lab.projectId)
        const inspected = engine.getContainer(builder?.Id ?? '').inspect()
        let answer: unknown
        void inspected.then(seen => {
          answer = seen
        })
        await until(() => answer !== undefined, 'the engine says what the container is')
        t.pass()
      })

    await t.test('a short disk takes the caches of projects that build nothing', async t => {
      const application = await lab.application('kept', sample('kept'))
      t.equal((await application.deployed()).status, 'success')
      t.equal((await builders(lab.projectId)).length, 1)
      // More than any disk has free.
      await lab.k.configure('builds', { ...settingsOf(kind), disk_floor_mib: 2 ** 30 })
      t.match(await application.deployed(), { status: 'failed', error_message: /disk/ })
      await until(
        async () => (await builders(lab.projectId)).length === 0,
        'the engine has gone with its cache'
      )
      await lab.k.configure('builds', settingsOf(kind))
      t.equal((await application.deployed()).status, 'success')
    })

    await t.test('it goes with the cache, and is made anew by the next build', async t => {
      const admin = await lab.k.as.session()
      const application = await lab.application('cleared', sample('cleared'))
      t.equal((await application.deployed()).status, 'success')
      const before = (await admin.get(`${application.path}/cache`)).body.build_cache_bytes as number
      t.ok(before > 2 ** 18)
      t.equal((await admin.delete(`${application.path}/cache`)).status, 200)
      t.ok(((await admin.get(`${application.path}/cache`)).body.build_cache_bytes as number) < before / 2)
      t.equal((await builders(lab.projectId)).length, 0)
      t.equal((await application.deployed()).status, 'success')
    })
  })
}
