/** The hooks of `test-thread-loader.mjs`. */
import { statSync } from 'node:fs'

const root = new URL('..', import.meta.url).href
let bundles = ''

export function initialize(data) {
  bundles = data.bundles
}

/** What the platform exports, and what a thread begins with. */
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context)
  if (!found.url.startsWith(root) || !found.url.endsWith('.ts')) return found
  const url = new URL(`${found.url.slice(root.length, -'.ts'.length)}.js`, bundles)
  if (statSync(url, { throwIfNoEntry: false }) === undefined)
    throw new Error(
      `${found.url} is not among what threads of tests load: name it in scripts/test-threads.mjs`
    )
  return { url: url.href, shortCircuit: true }
}

/** Without a source, Node.js loads CommonJS by itself; with one, each `require` in it would come by here. */
export async function load(url, context, next) {
  if (context.format === 'commonjs') return { format: 'commonjs', source: null, shortCircuit: true }
  return await next(url, context)
}
