import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { cleanPath, openRoot, readSource } from '../context/source-tree.js'
import { problems } from '../problems.js'

/** Where a site that is kept as it is served lies, likeliest first; '' is the root. */
const plainFolders = ['public', 'dist', 'build', '_site', 'out', '']

/**
 * Where a build puts a site. `public` comes late: most builds take their input from it. The root is not
 * among them: its index.html is the one that the build began with.
 */
const builtFolders = ['dist', 'build', 'out', '_site', '.output/public', 'public']

const shownNames = 20

/** A static site in a source tree. */
export type StaticSite =
  /** Served as it is. */
  | {
      readonly kind: 'plain'
      readonly directory: string
      readonly path: string
      readonly hasNotFoundPage: boolean
    }
  /** What `npm run build` makes is served, from the first of these folders that has it. */
  | { readonly kind: 'built'; readonly install: Install; readonly folders: readonly string[] }

/** How the packages of a site are installed and its build is run. */
export interface Install {
  readonly install: string
  readonly build: string
  /** Files that are enough for the installation, so that it is repeated only when one of them has changed; none: it needs the whole source. */
  readonly files: readonly string[]
}

/** Finds it; `wanted` is the folder that the user has named. */
export async function findSite(directory: string, wanted: string | undefined): Promise<StaticSite> {
  const install = await readInstall(directory)
  const named = wanted === undefined ? undefined : cleanPath(wanted, 'STATIC_DIRECTORY')
  if (install !== undefined)
    return {
      kind: 'built',
      install,
      folders: named === undefined ? builtFolders : [named === '' ? '.' : named]
    }
  const folders = named === undefined ? plainFolders : [named]
  for (const path of folders) {
    if (await isFile(directory, join(path, 'index.html'))) {
      return {
        kind: 'plain',
        directory: await openRoot(directory, path),
        path,
        hasNotFoundPage: await isFile(directory, join(path, '404.html'))
      }
    }
  }
  throw problems.siteMissing({ folders: shown(folders), found: await describeTree(directory) })
}

const shown = (folders: readonly string[]): string =>
  folders.map(folder => (folder === '' ? 'the root' : folder)).join(', ')

/** Of the tree itself, with nothing on the way that is a link. */
async function isFile(directory: string, path: string): Promise<boolean> {
  const parts = path.split('/')
  for (const [at] of parts.entries()) {
    const seen = await lstat(join(directory, ...parts.slice(0, at + 1))).catch(() => undefined)
    if (at === parts.length - 1) return seen?.isFile() === true
    if (seen?.isDirectory() !== true) return false
  }
  return false
}

async function describeTree(directory: string): Promise<string> {
  const entries = (await readdir(directory, { withFileTypes: true }))
    .map(entry => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort()
  if (entries.length === 0) return 'the directory is empty'
  return `found were: ${entries.slice(0, shownNames).join(', ')}${entries.length > shownNames ? ', …' : ''}`
}

interface Package {
  readonly scripts: Readonly<Record<string, unknown>>
  readonly isSelfContained: boolean
}

/** Undefined when there is nothing to build. */
async function readInstall(directory: string): Promise<Install | undefined> {
  const text = await readSource(directory, 'package.json')
  if (text === undefined) return undefined
  const { scripts, isSelfContained } = parsePackage(text)
  if (typeof scripts.build !== 'string') return undefined
  const has = async (name: string): Promise<boolean> => await isFile(directory, name)
  const lock = await firstOf(has, Object.keys(managers))
  const { install, build } = managers[lock ?? ''] ?? npm('npm install --no-audit --no-fund')
  if (!isSelfContained) return { install, build, files: [] }
  const npmrc = (await has('.npmrc')) ? ['.npmrc'] : []
  return { install, build, files: ['package.json', ...(lock === undefined ? [] : [lock]), ...npmrc] }
}

async function firstOf(
  has: (name: string) => Promise<boolean>,
  names: readonly string[]
): Promise<string | undefined> {
  for (const name of names) if (await has(name)) return name
  return undefined
}

const npm = (install: string) => ({ install, build: 'npm run build' })
const managers: Readonly<Record<string, { readonly install: string; readonly build: string }>> = {
  'package-lock.json': npm('npm ci --no-audit --no-fund'),
  'npm-shrinkwrap.json': npm('npm ci --no-audit --no-fund'),
  'pnpm-lock.yaml': { install: 'corepack pnpm install --frozen-lockfile', build: 'corepack pnpm run build' },
  'yarn.lock': { install: 'corepack yarn install --frozen-lockfile', build: 'corepack yarn run build' }
}

/** Scripts that npm runs during an installation; they may need any file of the source. */
const installScripts = [
  'preinstall',
  'install',
  'postinstall',
  'preprepare',
  'prepare',
  'postprepare',
  'prepublish'
]

function parsePackage(text: string): Package {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw problems.badPackage({ reason: error instanceof Error ? error.message : String(error) })
  }
  const fields = isRecord(value) ? value : {}
  const scripts = isRecord(fields.scripts) ? fields.scripts : {}
  const needsSource =
    'workspaces' in fields ||
    /"(file|link|workspace|portal|patch):/.test(text) ||
    installScripts.some(name => name in scripts)
  return {
    scripts,
    isSelfContained:
      !needsSource && !('packageManager' in fields && /yarn@[2-9]/.test(String(fields.packageManager)))
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
