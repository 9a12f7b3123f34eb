import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const manifest = createRequire(import.meta.url).resolve('busbar/package.json')
const { scripts } = JSON.parse(readFileSync(manifest, 'utf8')) as { scripts: { start: string } }

/** The options of Node.js with which `npm start` runs the platform: what is measured is to be what runs. */
export const startFlags: readonly string[] = scripts.start.match(/--[a-z]\S*/g) ?? []

/** What it sets in the environment. */
export const startEnvironment: Readonly<Record<string, string>> = Object.fromEntries(
  [...scripts.start.matchAll(/\b([A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value])
)
