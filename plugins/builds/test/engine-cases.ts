import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { rotatingSample, type SampleOptions } from '../../../scripts/rotating-sample.mjs'
import { engine } from '../../deployments/test/deploy-lab.js'
import { builders, type EngineKind, execIn, has, linesOf, openEngineLab, port, sample } from './engine-lab.js'

export const servedAndCached = 'what it builds is served, and built again from its cache'
export const needsNoDownload = 'heredocs, linked copies and a syntax line need no download'

/** What each kind of build engine builds, and for whom: all of it, or a sample. */
export function testBuildEngine(name: string, kind: EngineKind, sampling?: SampleOptions): void {
  const suite = `${name}, for one project`
  void test(suite, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)
    const cases = new Map<string, (t: Test) => Promise<void>>()

    cases.set(servedAndCached, async t => {
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

    cases.set('the bridge that its steps are behind learns nothing', async t => {
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

    cases.set('secrets are there for the steps that mount them, and nowhere else', async t => {
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

    if (kind.isNew)
      cases.set(needsNoDownload, async t => {
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

    cases.set('what another project builds is nowhere in it', async t => {
      const own = await lab.application('own', { ...sample('own'), 'marker-of-one.txt': 'x' })
      t.equal((await own.deployed()).status, 'success')
      const other = await lab.otherProject('other', { ...sample('other'), 'marker-of-two.txt': 'x' })
      t.equal((await other.deployed()).status, 'success')
      const [builder] = await builders(lab.projectId)
      const names = await execIn(builder?.Id ?? '', '', ['find', '/var/lib/builder', '-name', 'marker-of-*'])
      t.match(names, /marker-of-one/)
      t.notMatch(names, /marker-of-two/)
    })

    cases.set('it goes with the cache, and is made anew by the next build', async t => {
      const admin = await lab.k.as.session()
      const application = await lab.application('cleared', sample('cleared'))
      t.match(await application.deployed(), { status: 'success', error_message: null })
      const before = (await admin.get(`${application.path}/cache`)).body.build_cache_bytes as number
      t.ok(before > 2 ** 18)
      t.equal((await admin.delete(`${application.path}/cache`)).status, 200)
      t.ok(((await admin.get(`${application.path}/cache`)).body.build_cache_bytes as number) < before / 2)
      t.equal((await builders(lab.projectId)).length, 0)
      t.match(await application.deployed(), { status: 'success', error_message: null })
    })

    const chosen = sampling === undefined ? cases : rotatingSample(suite, [...cases.keys()], sampling)
    for (const [title, run] of cases) if (chosen.has(title)) await t.test(title, run)
  })
}
