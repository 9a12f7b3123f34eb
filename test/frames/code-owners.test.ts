import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'tap'
import { codeOwners, noteCode } from '../../core/frames/code-owners.js'

test('code has its owner wherever it lies: stacks have the address of a module, in which much is encoded, behind links', async t => {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'busbar-owners-')))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  const names = [
    'plain',
    'a space',
    'ümläut',
    'per%20cent',
    'ha#sh',
    'ques?tion',
    "quo'te",
    '[b]{r}(ac)kets',
    '日本'
  ]
  for (const [at, name] of names.entries()) {
    const folder = join(home, name)
    await mkdir(folder)
    await writeFile(join(folder, 'x.mjs'), "export const fail = () => new Error('x')\n")
    const link = join(home, `link to ${at}`)
    await symlink(folder, link)
    for (const [from, plugin] of [
      [folder, `direct-${at}`],
      [link, `linked-${at}`]
    ] as const) {
      noteCode(from, plugin)
      const { fail } = (await import(pathToFileURL(join(from, 'x.mjs')).href)) as { fail: () => Error }
      t.ok(codeOwners(fail()).includes(plugin), `${plugin} in ${name}`)
    }
    // As a source map gives it.
    const mapped = Object.assign(new Error('x'), { stack: `Error: x\n    at f (${folder}/index.ts:1:1)` })
    t.ok(codeOwners(mapped).length > 0, name)
  }
  t.same(codeOwners(new Error('of nobody')), [])
})
