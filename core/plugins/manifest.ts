import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { kernel, object, type Static, Type } from 'busbar/sdk'
import semver from 'semver'
import { unknownName } from '../config/did-you-mean.js'

const versionRanges = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  additionalProperties: { type: 'string', minLength: 1 },
  default: {}
})

const manifest = object({
  id: Type.String({ pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$', maxLength: 40 }),
  version: Type.String(),
  /** The range of SDK versions the plugin was written for. */
  sdk: Type.String(),
  name: Type.String({ minLength: 1, maxLength: 80 }),
  description: Type.String({ minLength: 1, maxLength: 400 }),
  /** Plugins that must run before this one, with version ranges. */
  requires: versionRanges,
  /** Plugins it uses when they are there. */
  optional: versionRanges,
  /** Kernel services it asks for, by their names in `kernel`. */
  grants: Type.Unsafe<readonly string[]>({
    type: 'array',
    items: { type: 'string' },
    uniqueItems: true,
    default: []
  }),
  /** Cannot be disabled; its failure aborts the start. Built-in plugins only. */
  essential: Type.Boolean({ default: false }),
  /** The entry module without its ending. */
  main: Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9_./-]*$', default: 'index' })
})

/** What `plugin.json` says. Known before any code of the plugin runs. */
export type Manifest = Readonly<Static<typeof manifest>>

const largestManifest = 64 * 1024

const grantNames: readonly string[] = Object.keys(kernel)

const validate = new Ajv({ useDefaults: true, allErrors: true }).compile<Manifest>(manifest)

/** The kernel's own words for what is wrong with a `plugin.json`; every fault is named. */
class ManifestError extends Error {}

/** Checks the text of a `plugin.json`. Pure; `folder` is the name the id must have. */
export function parseManifest(text: string, folder: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ManifestError(`plugin.json is not valid JSON: ${(error as Error).message}`)
  }
  if (!validate(value)) {
    const faults = (validate.errors ?? []).map(({ instancePath, message, params }) => {
      const unknown = 'additionalProperty' in params ? ` "${String(params.additionalProperty)}"` : ''
      return `${instancePath === '' ? 'plugin.json' : instancePath.slice(1)} ${message ?? 'is wrong'}${unknown}`
    })
    throw new ManifestError(faults.join('; '))
  }
  const faults = [
    value.id !== folder && `the id "${value.id}" is not the name of its folder "${folder}"`,
    semver.valid(value.version) === null && `version "${value.version}" is not a semantic version`,
    ...[['sdk', value.sdk], ...Object.entries(value.requires), ...Object.entries(value.optional)].map(
      ([name, range]) => semver.validRange(range) === null && `"${range}" of ${name} is not a version range`
    ),
    ...value.grants.map(
      grant => !grantNames.includes(grant) && `the grant ${unknownName(grant, grantNames)}`
    ),
    value.main.split('/').includes('..') && 'main leaves the folder of the plugin'
  ].filter(fault => fault !== false)
  if (faults.length > 0) throw new ManifestError(faults.join('; '))
  return Object.freeze(value)
}

export async function readManifest(directory: string, folder: string): Promise<Manifest> {
  const file = join(directory, 'plugin.json')
  // Reading a pipe or a device may never end.
  const { size, isPlain } = await stat(file).then(found => ({ size: found.size, isPlain: found.isFile() }))
  if (!isPlain) throw new ManifestError('plugin.json is not a file')
  if (size > largestManifest) throw new ManifestError(`plugin.json is larger than ${largestManifest} bytes`)
  return parseManifest(await readFile(file, 'utf8'), folder)
}
