import { Ajv } from 'ajv'
import { object, type Static, Type } from 'busbar/sdk'
import semver from 'semver'
import { parseDeclaration, readDeclaration } from './declaration-file.js'

const contract = object({
  id: Type.String({ pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$', maxLength: 40 }),
  version: Type.String(),
  name: Type.String({ minLength: 1, maxLength: 80 }),
  description: Type.String({ minLength: 1, maxLength: 400 })
})

/**
 * What `contract.json` says. A contract is types and keys of services without an implementation: plugins require its id, and
 * of the plugins that implement it one at a time provides it.
 */
export type Contract = Readonly<Static<typeof contract>>

const validate = new Ajv({ allErrors: true }).compile<Static<typeof contract>>(contract)

/** Checks the text of a `contract.json`. Pure; `folder` is the name the id must have. */
export const parseContract = (text: string, folder: string): Contract =>
  parseDeclaration(text, 'contract.json', validate, ({ id, version }) => [
    id !== folder && `the id "${id}" is not the name of its folder "${folder}"`,
    semver.valid(version) === null && `version "${version}" is not a semantic version`
  ])

export const readContract = async (directory: string, folder: string): Promise<Contract> =>
  parseContract(await readDeclaration(directory, 'contract.json'), folder)
