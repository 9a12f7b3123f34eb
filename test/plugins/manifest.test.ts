import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { parseContract } from '../../core/plugins/contract.js'
import { parseManifest, readManifest } from '../../core/plugins/manifest.js'

const good = { id: 'hello', version: '1.0.0', sdk: '^0.1.0', name: 'Hello', description: 'Greets.' }
const parse = (change: object): unknown => parseManifest(JSON.stringify({ ...good, ...change }), 'hello')

test('a whole manifest is read with its defaults', async t => {
  t.match(parseManifest(JSON.stringify(good), 'hello'), {
    ...good,
    requires: {},
    optional: {},
    implements: {},
    grants: [],
    essential: false,
    main: 'index'
  })
})

test('every fault of a manifest is named', async t => {
  const cases: Array<[object, RegExp]> = [
    [{ id: 'Hello!' }, /id must match pattern/],
    [{ id: 'other' }, /"other" is not the name of its folder "hello"/],
    [{ version: 'one' }, /version "one" is not a semantic version/],
    [{ requires: { projects: 'soon' } }, /"soon" of projects is not a version range/],
    [{ implements: { containers: 'any' } }, /"any" of containers is not a version range/],
    [{ implements: ['containers'] }, /implements must be object/],
    [{ colour: 'red' }, /must NOT have additional properties "colour"/],
    [{ name: undefined }, /must have required property 'name'/],
    [{ grants: 'all' }, /grants must be array/],
    [
      { grants: ['jobs', 'databse'] },
      /the grant "databse" is unknown; did you mean "database"\? known are database, jobs/
    ],
    [{ main: '../../etc/passwd' }, /main must match pattern/],
    [{ main: 'a/../../b' }, /main leaves the folder/]
  ]
  for (const [change, message] of cases) t.throws(() => parse(change), message, JSON.stringify(change))
})

test('text that is no JSON is refused with its place', async t => {
  t.throws(() => parseManifest('{ "id": ', 'hello'), /not valid JSON/)
})

test('what is no file, or larger than 64 KiB, is not read', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-manifest-'))
  t.teardown(async () => await rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'plugin.json')
  const manifest = JSON.stringify({ id: 'x', version: '1.0.0', sdk: '*', name: 'x', description: 'A test.' })
  await writeFile(file, manifest.padEnd(64 * 1024))
  t.match(await readManifest(directory, 'x'), { id: 'x' })
  await writeFile(file, manifest.padEnd(64 * 1024 + 1))
  await t.rejects(readManifest(directory, 'x'), { message: 'plugin.json is larger than 65536 bytes' })
  await rm(file)
  await mkdir(file)
  await t.rejects(readManifest(directory, 'x'), { message: 'plugin.json is not a file' })
})

test('a contract has an id, a version and words for the operator, and nothing else', async t => {
  const ships = { id: 'ships', version: '1.0.0', name: 'Ships', description: 'What sails.' }
  const parseShips = (change: object): unknown =>
    parseContract(JSON.stringify({ ...ships, ...change }), 'ships')
  t.same(parseShips({}), ships)
  const cases: Array<[object, RegExp]> = [
    [{ id: 'boats' }, /"boats" is not the name of its folder "ships"/],
    [{ version: 'one' }, /version "one" is not a semantic version/],
    [{ description: undefined }, /must have required property 'description'/],
    [{ main: 'index' }, /contract.json must NOT have additional properties "main"/]
  ]
  for (const [change, message] of cases) t.throws(() => parseShips(change), message, JSON.stringify(change))
})

test('texts of a manifest have lengths, and every fault is told at once', async t => {
  const idOf = (length: number): string => 'a'.repeat(length)
  const withId = (length: number) =>
    parseManifest(JSON.stringify({ ...good, id: idOf(length) }), idOf(length))
  t.equal(withId(40).id.length, 40)
  t.throws(() => withId(41), /id must NOT have more than 40 characters/)
  for (const [field, longest] of [
    ['name', 80],
    ['description', 400]
  ] as const) {
    for (const length of [1, longest]) t.match(parse({ [field]: 'x'.repeat(length) }), { id: 'hello' })
    t.throws(() => parse({ [field]: '' }), `${field} must NOT have fewer than 1 characters`)
    t.throws(() => parse({ [field]: 'x'.repeat(longest + 1) }), `${field} must NOT have more than ${longest}`)
  }
  for (const ranges of ['requires', 'optional', 'implements']) {
    t.match(parse({ [ranges]: { other: '1' } }), { [ranges]: { other: '1' } })
    t.throws(() => parse({ [ranges]: { other: '' } }), /must NOT have fewer than 1 characters/)
  }
  t.throws(() => parse({ grants: ['jobs', 'jobs'] }), /must NOT have duplicate items/)
  t.throws(() => parse({ sdk: 'soon' }), /"soon" of sdk is not a version range/)
  t.throws(() => parse({ name: '', description: '' }), /name must NOT.*; description must NOT/)
})
