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
    t.match(lines, [/^Built by a .* that this project alone uses/])
    t.ok(
      lines.some(line => /^\[2\/3\] WORKDIR \/app/.test(line)),
      lines.join('\n')
    )

    await application.push(sample('two'))
    const second = await application.deployed()
    t.equal(second.status, 'success', JSON.stringify(second.error_message))
    t.equal(await (await fetch((await application.read()).direct_url)).text(), 'two')
    t.ok(
      linesOf(second).some(line => /is taken from the cache/.test(line)),
      linesOf(second).join('\n')
    )

    const [builder] = await builders(lab.projectId)
    t.ok(builder, 'the engine of the project runs')
    const seen = await engine.getContainer(builder?.Id ?? '').inspect()
    t.strictSame(Object.keys(seen.NetworkSettings.Networks).length, 1)
    t.notOk(seen.HostConfig.Privileged)
    t.strictSame(seen.HostConfig.Binds ?? [], [])
    t.ok((seen.HostConfig.Memory ?? 0) > 0 && (seen.HostConfig.PidsLimit ?? 0) > 0)
  })
}
