import { readFile } from 'node:fs/promises'
import { dirname, relative } from 'node:path'
import { isEntry, withoutEnding } from './sources.mjs'

/** Packages that are built in, as one file is loaded faster than hundreds and takes less memory: by the module that imports them. */
const builtIn = new Set(['sdk/typebox.ts', 'core/database/knex.ts', 'core/jobs/graphile-worker.ts'])
/** Not even there: what others load as well, and drivers and tools that are not installed. */
const besides = new Set([
  'pg',
  'pg-native',
  'pg-query-stream',
  'better-sqlite3',
  'mariadb',
  'mysql',
  'mysql2',
  'oracledb',
  'sqlite3',
  'tedious',
  'typescript'
])

const options = {
  bundle: true,
  // what several entries need is there once, in a file of its own
  splitting: true,
  chunkNames: 'shared/[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  conditions: ['busbar-source'],
  sourcemap: true,
  // the text of what runs stays in memory; lines keep stacks readable
  minifyWhitespace: true,
  lineLimit: 160,
  // packages in CommonJS ask for what Node.js brings by `require`
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"
  },
  logLevel: 'silent',
  write: false
}

/** Whether a file of dist/ is what several entries need. It is called by its content. */
export const isShared = path => path.startsWith('shared/')

/** Where a module's own address is asked for, this stands for the way from the file that it is in to dist/. */
const home = '@dist/'

/** Bundles the entries among the sources; the files that are to be written, maps first: an output that is there is complete. */
export async function bundle({ root, out, sources }) {
  // loaded here, because a build with nothing to do must not wait for it
  const esbuild = await import('esbuild')
  try {
    const { outputFiles } = await esbuild.build({
      ...options,
      absWorkingDir: root,
      entryPoints: sources
        .filter(({ path }) => isEntry(path))
        .map(({ path }) => ({ in: path, out: withoutEnding(path) })),
      outdir: out,
      plugins: [packages(root), ownAddress(root)]
    })
    return outputFiles
      .map(({ path, text }) => {
        const whole = placed(text, dirname(path), out)
        return { path: relative(out, path), text: path.endsWith('.map') ? whole : ascii(whole) }
      })
      .sort((a, b) => Number(b.path.endsWith('.map')) - Number(a.path.endsWith('.map')))
  } finally {
    await esbuild.stop()
  }
}

/** Packages stay where npm has put them, but for a few. */
const packages = root => ({
  name: 'packages',
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
      if (kind === 'entry-point') return undefined
      if (path.startsWith('busbar/') && path !== 'busbar/package.json') return undefined
      const name = path
        .split('/')
        .slice(0, path.startsWith('@') ? 2 : 1)
        .join('/')
      const isOfBuiltIn = importer.includes('/node_modules/') || builtIn.has(relative(root, importer))
      return isOfBuiltIn && !besides.has(name) && !path.startsWith('node:')
        ? undefined
        : { path, external: true }
    })
  }
})

/** `import.meta.url` goes on to be the address of the module, not of the file that it is built into. */
const ownAddress = root => ({
  name: 'own address',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      if (!text.includes('import.meta.url')) return undefined
      const address = `new URL(${JSON.stringify(`${home}${withoutEnding(relative(root, path))}.js`)}, import.meta.url).href`
      return { contents: text.replaceAll('import.meta.url', address), loader: 'ts' }
    })
  }
})

function placed(text, folder, out) {
  const up = relative(folder, out)
  return text.replaceAll(`"${home}`, `"${up === '' ? './' : `${up}/`}`)
}

/**
 * A text with one letter beyond Latin-1 takes two bytes in memory for each of its letters. esbuild leaves such letters in
 * patterns alone; those beyond the first 65 536 are in patterns with the flag `u`, or would match their halves.
 * A backslash before such a letter stands for nothing, and would take the one of the escape for its own.
 */
const ascii = text =>
  text.replace(/\\[\0-\x7f]|\\?([^\0-\x7f])/gu, (found, letter) => {
    if (letter === undefined) return found
    const code = letter.codePointAt(0).toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })
