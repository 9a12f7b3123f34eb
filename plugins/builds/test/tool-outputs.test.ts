import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'tap'
import { extract } from 'tar-stream'
import { nixpacksVariables, readNixpacksOutput, withoutNixpacksOutput } from '../builders/nixpacks-output.js'
import { readRailpackPlan, secretsText, valuesOfSecrets } from '../builders/railpack-plan.js'
import { packTree, selectEntries } from '../context/build-context.js'
import { folder } from './kit.js'

test('what nixpacks has written is read, and nothing through links', async t => {
  const out = await folder(t)
  await t.rejects(readNixpacksOutput(out), { code: 'E_BUILD_TOOL_RESULT', message: /none at \.nixpacks/ })
  await mkdir(join(out, '.nixpacks/assets'), { recursive: true })
  await writeFile(join(out, '.nixpacks/Dockerfile'), 'FROM x\n')
  await writeFile(join(out, '.nixpacks/build.sh'), 'docker build')
  await writeFile(join(out, '.nixpacks/assets/a'), 'a')
  await writeFile(join(out, 'beside'), 'x')
  await symlink('/etc/hostname', join(out, '.nixpacks/link'))
  await symlink('/etc', join(out, '.nixpacks/folder'))
  const { text, files } = await readNixpacksOutput(out)
  t.equal(text, 'FROM x\n')
  t.strictSame(Object.keys(files).sort(), ['.nixpacks/Dockerfile', '.nixpacks/assets/a'])
  await writeFile(join(out, '.nixpacks/large'), Buffer.alloc(9 * 2 ** 20))
  await t.rejects(readNixpacksOutput(out), { code: 'E_BUILD_TOOL_RESULT', message: /more than 8 MiB/ })
})

test('what an application has in the folder of nixpacks is left out of the build', async t => {
  const tree = await folder(t)
  await mkdir(join(tree, 'src'))
  await symlink('/etc', join(tree, '.nixpacks'))
  for (const path of ['src/.nixpacks', '.nixpacks-of-mine']) await writeFile(join(tree, path), 'x')
  const { included } = await selectEntries(tree, [])
  const packed: Record<string, string> = {}
  const tar = packTree(tree, withoutNixpacksOutput(included), {
    '.nixpacks/Dockerfile': Buffer.from('FROM x')
  })
  const entries = extract()
  entries.on('entry', ({ name, type = '' }, content, next) => {
    packed[name] = type ?? ''
    content.on('end', next).resume()
  })
  await new Promise<void>((resolve, reject) => {
    entries.on('finish', () => resolve()).on('error', reject)
    Readable.from(tar).pipe(entries)
  })
  t.strictSame(packed, {
    '.': 'directory',
    src: 'directory',
    'src/.nixpacks': 'file',
    '.nixpacks-of-mine': 'file',
    '.nixpacks/Dockerfile': 'file'
  })
})

test('the variables of nixpacks are those of its plan', async t => {
  t.strictSame(
    nixpacksVariables(
      'Warning: x\n{"variables":{"CI":"true","A_1":"x\\ny","N":1,"not one":"x","--x":"y"}}\n'
    ),
    { CI: 'true', A_1: 'x\ny' }
  )
  t.strictSame(nixpacksVariables('{"phases":{}}'), {})
  for (const answer of ['', 'nothing', '{', '{"variables":3}', '[]x'])
    t.throws(() => nixpacksVariables(answer), { code: 'E_BUILD_TOOL_RESULT' }, answer)
})

test('the secrets of a plan are variables of the application', async t => {
  const out = await folder(t)
  const planOf = async (text: string) => {
    await writeFile(join(out, 'railpack-plan.json'), text)
    return await readRailpackPlan(out)
  }
  await t.rejects(readRailpackPlan(out), { code: 'E_BUILD_TOOL_RESULT', message: /there is none/ })
  for (const text of ['FROM x', '{"secrets":{}}', '{"secrets":[1]}'])
    await t.rejects(planOf(text), { code: 'E_BUILD_TOOL_RESULT' }, text)
  t.strictSame((await planOf('{"secrets":null}')).secrets, [])
  t.strictSame((await planOf('{"steps":[]}')).secrets, [])

  const variables = [
    { key: 'B', value: 'two', isSecret: true },
    { key: 'A', value: 'one', isSecret: false },
    { key: 'C', value: 'three', isSecret: true }
  ]
  t.strictSame(valuesOfSecrets(await planOf('{"secrets":["B","A"]}'), variables), { B: 'two', A: 'one' })
  await t.rejects(async () => valuesOfSecrets(await planOf('{"secrets":["A","X","__proto__"]}'), variables), {
    code: 'E_BUILD_VARIABLE',
    message: /: X, __proto__; add them/
  })
})

test('the code of secrets changes with a value, a name and the application, and not with their order', async t => {
  const text = secretsText('app', { A: 'x', B: 'y' })
  t.equal(secretsText('app', { B: 'y', A: 'x' }), text)
  for (const other of [
    secretsText('app', { A: 'x', B: 'z' }),
    secretsText('app', { A: 'x', C: 'y' }),
    secretsText('app', { A: 'xB', y: '' }),
    secretsText('other', { A: 'x', B: 'y' })
  ])
    t.not(other, text)
})
