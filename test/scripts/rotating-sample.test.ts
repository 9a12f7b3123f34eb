import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ofFamilies, withoutThoseOfOtherCommits } from '../../scripts/rotating-files.mjs'
import { choose, rotatingSample } from '../../scripts/rotating-sample.mjs'

const cases = ['load', 'build', 'create', 'start', 'switch', 'record', 'drain']
const options = { always: ['build', 'switch'], others: 2 }

test('a sample holds what always runs and as many of the others, the same ones for the same commit', async t => {
  for (let seed = 0; seed < 50; seed++) {
    const chosen = choose('a crash', cases, options, `${seed}`)
    t.equal(chosen.size, 4)
    t.ok(options.always.every(one => chosen.has(one)))
    t.same(choose('a crash', cases, options, `${seed}`), chosen)
  }
})

test('over many commits every case has its turn', async t => {
  const seen = new Map<string, number>()
  for (let seed = 0; seed < 200; seed++)
    for (const one of choose('a crash', cases, { always: [], others: 2 }, `${seed}`))
      seen.set(one, (seen.get(one) ?? 0) + 1)
  // Two of seven: 57 of 200 each, more or less.
  for (const one of cases) t.ok((seen.get(one) ?? 0) > 25, `${one}: ${seen.get(one)} of 200`)
})

test('with SAMPLES=all every case runs', async t => {
  const { SAMPLES: before } = process.env
  t.teardown(() => {
    if (before === undefined) delete process.env.SAMPLES
    else process.env.SAMPLES = before
  })
  process.env.SAMPLES = 'all'
  t.same([...rotatingSample('a crash', cases, options)], cases)
})

test('a case that always runs and is no more is an error', async t => {
  t.throws(() => choose('a crash', cases, { always: ['pull'], others: 1 }, 'x'), /no such cases: pull/)
})

test('a run of everything takes files of every family, and all files of no family', async t => {
  const { SAMPLES: before } = process.env
  t.teardown(() => {
    if (before === undefined) delete process.env.SAMPLES
    else process.env.SAMPLES = before
  })
  delete process.env.SAMPLES
  const files = ['plugins/builds/test', 'plugins/deployments/test'].flatMap(folder =>
    readdirSync(join(import.meta.dirname, '../..', folder))
      .filter(name => name.endsWith('.test.ts'))
      .map(name => `${folder}/${name}`)
  )
  const taken = withoutThoseOfOtherCommits(files)
  for (const [family, count] of [
    [/build-engine-/, 5],
    [/\/engine-crash-/, 2],
    [/\/(?:disk|application|build)-(?:disk|files|owners|watch|images|full)\./, 2]
  ] as const) {
    const chosen = taken.filter(file => family.test(file)).length
    t.ok(chosen >= count && chosen < files.filter(file => family.test(file)).length, `${family}: ${chosen}`)
  }
  t.ok(taken.includes('plugins/builds/test/build-engine-docker-26.test.ts'))
  t.ok(taken.length > files.length * 0.75)
  const left = files.filter(file => !taken.includes(file))
  t.same(
    left.filter(file => !ofFamilies(files).includes(file)),
    [],
    'npm run test:faults runs what is left out'
  )
  const builds = files.filter(file => file.startsWith('plugins/builds/'))
  t.ok(withoutThoseOfOtherCommits(builds).length < builds.length, 'also of some of the files of a family')
  process.env.SAMPLES = 'all'
  t.same(withoutThoseOfOtherCommits(files), files)
})
