import { Ajv } from 'ajv'
import { kernel, object, type Static, Type } from 'busbar/sdk'
import semver from 'semver'
import { unknownName } from '../schemas/did-you-mean.js'
import { parseDeclaration, readDeclaration } from './declaration-file.js'

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
  /** Plugins and contracts that must run before this one, with version ranges. */
  requires: versionRanges,
  /** Plugins and contracts it uses when they are there. */
  optional: versionRanges,
  /** Contracts whose services it provides, with the ranges of their versions. */
  implements: versionRanges,
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

const grantNames: readonly string[] = Object.keys(kernel)

const validate = new Ajv({ useDefaults: true, allErrors: true }).compile<Static<typeof manifest>>(manifest)

/** Checks the text of a `plugin.json`. Pure; `folder` is the name the id must have. */
export const parseManifest = (text: string, folder: string): Manifest =>
  parseDeclaration(text, 'plugin.json', validate, value => [
    value.id !== folder && `the id "${value.id}" is not the name of its folder "${folder}"`,
    semver.valid(value.version) === null && `version "${value.version}" is not a semantic version`,
    ...[
      ['sdk', value.sdk] as const,
      ...[value.requires, value.optional, value.implements].flatMap(ranges => Object.entries(ranges))
    ].map(
      ([name, range]) => semver.validRange(range) === null && `"${range}" of ${name} is not a version range`
    ),
    ...value.grants.map(
      grant => !grantNames.includes(grant) && `the grant ${unknownName(grant, grantNames)}`
    ),
    value.main.split('/').includes('..') && 'main leaves the folder of the plugin'
  ])

export const readManifest = async (directory: string, folder: string): Promise<Manifest> =>
  parseManifest(await readDeclaration(directory, 'plugin.json'), folder)

/** What an operator consents to by turning on a plugin: kernel services by their names, and contracts by these. */
export const grantsOf = ({ grants, implements: contracts }: Manifest): readonly string[] => [
  ...grants,
  ...Object.keys(contracts).map(implementsGrant)
]
export const implementsGrant = (contract: string): string => `implements:${contract}`
