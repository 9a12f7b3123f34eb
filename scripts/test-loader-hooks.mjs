/** The hooks of `test-loader.mjs`. What is transpiled is kept in `.lab/transpiled`, one file a source. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { threadLoader } from './test-threads.mjs'
import { bundledTypebox, typebox } from './test-typebox.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const kept = join(root, '.lab', 'transpiled')
/** As `tsconfig.json` has it, and `scripts/build.mjs`. */
const options = {
  loader: 'ts',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: 'inline',
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, target: 'ES2023' } }
}
const sha = (...parts) => {
  const hash = createHash('sha1')
  for (const part of parts) hash.update(part).update('\n')
  return hash.digest('hex')
}
const toolchain = sha(
  readFileSync(fileURLToPath(import.meta.url)),
  readFileSync(join(root, 'node_modules', 'esbuild', 'package.json'))
)

let isInGroup = false

export function initialize({ isGroup }) {
  isInGroup = isGroup
}

/** In a group, `test` of tap is that of the file. */
const groupedTap = new URL('test-group.mjs', import.meta.url).href
const domains = new URL('test-domains.mjs', import.meta.url).href

/** What starts threads from sources. */
const threads = new URL('../core/threads/worker-entry.ts', import.meta.url).href

/** `./name.js` beside a TypeScript source is `./name.ts` where that is there. */
export async function resolve(specifier, context, next) {
  if (specifier.startsWith('.') && specifier.endsWith('.js') && context.parentURL?.endsWith('.ts')) {
    const url = new URL(`${specifier.slice(0, -3)}.ts`, context.parentURL)
    if (statSync(url, { throwIfNoEntry: false })?.isFile()) return { url: url.href, shortCircuit: true }
  }
  if (isInGroup && specifier === 'tap' && context.parentURL?.endsWith('.ts'))
    return { url: groupedTap, shortCircuit: true }
  if (specifier === 'async-hook-domain') return { url: domains, shortCircuit: true }
  if (specifier === 'tsx/esm/api' && context.parentURL === threads)
    return { url: await threadLoader(), shortCircuit: true }
  if (specifier === typebox)
    return { url: pathToFileURL(await bundledTypebox()).href, format: 'module', shortCircuit: true }
  return await next(specifier, context)
}

export async function load(url, context, next) {
  // Without a source, Node.js loads CommonJS by itself; with one, each `require` in it would come by here.
  if (context.format === 'commonjs') return { format: 'commonjs', source: null, shortCircuit: true }
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return await next(url, context)
  return { format: 'module', source: await transpiled(fileURLToPath(url)), shortCircuit: true }
}

async function transpiled(path) {
  const source = readFileSync(path, 'utf8')
  const place = join(kept, `${sha(path)}.js`)
  const mark = `//${sha(toolchain, source)}`
  const before = read(place)
  if (before?.endsWith(mark)) return before
  const { transform } = await import('esbuild')
  const { code } = await transform(source, { ...options, sourcefile: path })
  const made = `${code}${mark}`
  mkdirSync(kept, { recursive: true })
  // Beside its place first: others read and write the same.
  const part = `${place}.${process.pid}`
  writeFileSync(part, made)
  renameSync(part, place)
  return made
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
