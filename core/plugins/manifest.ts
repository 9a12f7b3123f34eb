import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import semver from 'semver'

/** What `plugin.json` says. Known before any code of the plugin runs. */
export interface Manifest {
  readonly id: string
  readonly version: string
  /** The range of SDK versions the plugin was written for. */
  readonly sdk: string
  readonly name: string
  readonly description: string
  /** Plugins that must run before this one, with version ranges. */
  readonly requires: Readonly<Record<string, string>>
  /** Plugins it uses when they are there. */
  readonly optional: Readonly<Record<string, string>>
  /** Kernel services it asks for, by their names in `kernel`. */
  readonly grants: readonly string[]
  /** Cannot be disabled; its failure aborts the start. Built-in plugins only. */
  readonly essential: boolean
  /** The entry module without its ending. */
  readonly main: string
}

const versionRanges = { type: 'object', additionalProperties: { type: 'string', minLength: 1 }, default: {} }

const validate = new Ajv({ useDefaults: true, allErrors: true }).compile<Manifest>({
  type: 'object',
  additionalProperties: false,
  required: ['id', 'version', 'sdk', 'name', 'description'],
  properties: {
    id: { type: 'string', pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$', maxLength: 40 },
    version: { type: 'string' },
    sdk: { type: 'string' },
    name: { type: 'string', minLength: 1, maxLength: 80 },
    description: { type: 'string', minLength: 1, maxLength: 400 },
    requires: versionRanges,
    optional: versionRanges,
    grants: { type: 'array', items: { type: 'string' }, uniqueItems: true, default: [] },
    essential: { type: 'boolean', default: false },
    main: { type: 'string', pattern: '^[a-zA-Z0-9][a-zA-Z0-9_./-]*$', default: 'index' }
  }
})

/** The kernel's own words for what is wrong with a `plugin.json`; every fault is named. */
export class ManifestError extends Error {}

/** Checks the text of a `plugin.json`. Pure; `folder` is the name the id must have. */
export function parseManifest (text: string, folder: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ManifestError(`plugin.json is not valid JSON: ${(error as Error).message}`)
  }
  if (!validate(value)) {
    const faults = (validate.errors ?? []).map(({ instancePath, message, params }) => {
      const unknown = 'additionalProperty' in params ? ` "${String(params['additionalProperty'])}"` : ''
      return `${instancePath === '' ? 'plugin.json' : instancePath.slice(1)} ${message ?? 'is wrong'}${unknown}`
    })
    throw new ManifestError(faults.join('; '))
  }
  const faults = [
    value.id !== folder && `the id "${value.id}" is not the name of its folder "${folder}"`,
    semver.valid(value.version) === null && `version "${value.version}" is not a semantic version`,
    ...[['sdk', value.sdk], ...Object.entries(value.requires), ...Object.entries(value.optional)]
      .map(([name, range]) => semver.validRange(range) === null && `"${range}" of ${name} is not a version range`),
    value.main.split('/').includes('..') && 'main leaves the folder of the plugin'
  ].filter(fault => fault !== false)
  if (faults.length > 0) throw new ManifestError(faults.join('; '))
  return Object.freeze(value)
}

export async function readManifest (directory: string, folder: string): Promise<Manifest> {
  return parseManifest(await readFile(join(directory, 'plugin.json'), 'utf8'), folder)
}
