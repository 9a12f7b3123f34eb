import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { loadPlugin } from '../../core/plugins/loader.js'
import { parseManifest } from '../../core/plugins/manifest.js'

/** A third-party plugin whose code is `version`, and where its bundles lie. */
async function plugin(t: Test) {
  const home = await mkdtemp(join(tmpdir(), 'busbar-loader-'))
  t.teardown(async () => {
    await rm(home, { recursive: true, force: true })
  })
  const directory = join(home, 'words')
  await mkdir(directory)
  const manifest = parseManifest(
    JSON.stringify({ id: 'words', version: '1.0.0', sdk: '^0.1.0', name: 'words', description: 'A test.' }),
    'words'
  )
  return {
    bundles: async () => await readdir(join(home, 'cache', 'words')),
    write: async (version: number) => {
      const code = `import { definePlugin } from 'busbar/sdk'\nexport const version = ${version}\nexport default definePlugin({ id: 'words' })\n`
      await writeFile(join(directory, 'index.js'), code)
    },
    load: async () =>
      await loadPlugin({ id: 'words', directory, builtIn: false, manifest }, manifest, {
        inline: undefined,
        cache: join(home, 'cache'),
        others: []
      })
  }
}

test('a version of a plugin may be loaded several times at once', async t => {
  const { write, load, bundles } = await plugin(t)
  await write(1)
  const loaded = await Promise.all(Array.from({ length: 6 }, load))
  t.equal(loaded.length, 6)
  t.equal((await bundles()).length, 1, 'and leaves one file')
})

test('the versions of a plugin that were loaded last stay, as another process may be loading one', async t => {
  const { write, load, bundles } = await plugin(t)
  const inOrder: string[] = []
  for (let version = 0; version < 12; version++) {
    const before = version === 0 ? [] : await bundles()
    await write(version)
    await load()
    const after = await bundles()
    inOrder.push(...after.filter(name => !before.includes(name)))
    t.same(after.sort(), inOrder.slice(-6).sort(), `after ${version + 1}`)
  }
})
