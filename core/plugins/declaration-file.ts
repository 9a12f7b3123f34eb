import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ValidateFunction } from 'ajv'

const largestFile = 64 * 1024

/** The kernel's own words for what is wrong with a `plugin.json` or `contract.json`; every fault is named. */
class DeclarationError extends Error {}

/** Parses the text of `file` and checks it. Pure; `faultsOf` says what the schema cannot: each a text, or false. */
export function parseDeclaration<T>(
  text: string,
  file: string,
  validate: ValidateFunction<T>,
  faultsOf: (value: T) => ReadonlyArray<string | false>
): Readonly<T> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new DeclarationError(`${file} is not valid JSON: ${(error as Error).message}`)
  }
  if (!validate(value)) {
    const faults = (validate.errors ?? []).map(({ instancePath, message, params }) => {
      const unknown = 'additionalProperty' in params ? ` "${String(params.additionalProperty)}"` : ''
      return `${instancePath === '' ? file : instancePath.slice(1)} ${message ?? 'is wrong'}${unknown}`
    })
    throw new DeclarationError(faults.join('; '))
  }
  const faults = faultsOf(value).filter(fault => fault !== false)
  if (faults.length > 0) throw new DeclarationError(faults.join('; '))
  return Object.freeze(value)
}

/** The text of a small file; an error with code ENOENT or ENOTDIR where there is none. */
export async function readDeclaration(directory: string, name: string): Promise<string> {
  const file = join(directory, name)
  // Reading a pipe or a device may never end.
  const { size, isPlain } = await stat(file).then(found => ({ size: found.size, isPlain: found.isFile() }))
  if (!isPlain) throw new DeclarationError(`${name} is not a file`)
  if (size > largestFile) throw new DeclarationError(`${name} is larger than ${largestFile} bytes`)
  return await readFile(file, 'utf8')
}
