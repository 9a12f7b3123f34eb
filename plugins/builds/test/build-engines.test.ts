import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, sample } from '../../deployments/test/deploy-lab.js'
import { builders, engineKinds, linesOf, openEngineLab } from './engine-lab.js'

for (const [name, kind] of Object.entries(engineKinds)) {
  void test(`${name} builds, and what it has made is served`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)
    const application = await lab.application('isolated', sample('one'))
    const first = await application.deployed()
    t.equal(first.status, 'success', JSON.stringify(first.error_message) + first.build_logs)
    t.equal(await (await fetch((await application.read()).direct_url)).text(), 'one')
    const lines = linesOf(first)
    const has = (all: readonly string[], pattern: RegExp): boolean => all.some(line => pattern.test(line))
    t.ok(has(lines, /^Built by a .* that this project alone uses/), lines.join('\n'))
    t.ok(has(lines, /^\[.*\d\/3\] WORKDIR \/app/), lines.join('\n'))

    await application.push(sample('two'))
    const second = await application.deployed()
    t.equal(second.status, 'success', JSON.stringify(second.error_message))
    t.equal(await (await fetch((await application.read()).direct_url)).text(), 'two')
    t.ok(has(linesOf(second), /is taken from the cache/), linesOf(second).join('\n'))

    const [builder] = await builders(lab.projectId)
    t.ok(builder, 'the engine of the project runs')
    const seen = await engine.getContainer(builder?.Id ?? '').inspect()
    t.equal(
      Object.keys(seen.NetworkSettings.Networks).length,
      1,
      JSON.stringify([seen.State, seen.NetworkSettings])
    )
    t.notOk(seen.HostConfig.Privileged)
    t.strictSame(seen.HostConfig.Binds ?? [], [])
    t.ok((seen.HostConfig.Memory ?? 0) > 0 && (seen.HostConfig.PidsLimit ?? 0) > 0)
  })
}
