import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type EngineKind, has, linesOf, openEngineLab } from './engine-lab.js'

/** Static sites, in each kind of build engine. */
export function testStaticSitesInEngine(name: string, kind: EngineKind): void {
  void test(`static sites are built in ${name}, and tell what they lack`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)
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
}
