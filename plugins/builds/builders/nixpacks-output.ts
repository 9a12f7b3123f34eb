import { lstat, readdir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { readSource } from '../context/source-tree.js'
import { problems } from '../problems.js'

const program = 'nixpacks'

/** The folder of what it makes, beside the files of the application. */
const outputFolder = '.nixpacks'
export const nixpacksDockerfile = `${outputFolder}/Dockerfile`
/** How it would call docker itself, with the values of variables. No step needs it. */
const notForSteps = `${outputFolder}/build.sh`

const maxFiles = 1000
const maxBytes = 8 * 2 ** 20

interface NixpacksOutput {
  readonly text: string
  /** Paths as the Dockerfile names them. */
  readonly files: Readonly<Record<string, Buffer>>
}

/** What `nixpacks build --out` has written: a Dockerfile, and what that copies beside the application. */
export async function readNixpacksOutput(directory: string): Promise<NixpacksOutput> {
  const text = await readSource(directory, nixpacksDockerfile)
  if (text === undefined) throw bad('Dockerfile', `there is none at ${nixpacksDockerfile}`)
  const files: Record<string, Buffer> = {}
  let bytes = 0
  const walk = async (folder: string): Promise<void> => {
    for (const entry of await readdir(join(directory, folder), { withFileTypes: true })) {
      const path = posix.join(folder, entry.name)
      if (entry.isDirectory()) await walk(path)
      // A link would be one of the application's.
      if (!entry.isFile() || path === notForSteps) continue
      bytes += (await lstat(join(directory, path))).size
      if (bytes > maxBytes || Object.keys(files).length >= maxFiles)
        throw bad('output', `it has more than ${maxBytes / 2 ** 20} MiB or ${maxFiles} files`)
      files[path] = await readFile(join(directory, path))
    }
  }
  await walk(outputFolder)
  return { text, files }
}

/** What of a tree stays beside the output: an earlier one in it would be what steps see, or a link by which they see another. */
export const withoutNixpacksOutput = (included: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...included].filter(path => path !== outputFolder && !path.startsWith(`${outputFolder}/`)))

/** The values of the `ARG`s of its Dockerfile, from what `nixpacks plan` answers. */
export function nixpacksVariables(answer: string): Readonly<Record<string, string>> {
  const plan = parsed(answer)
  const variables = typeof plan === 'object' && plan !== null && 'variables' in plan ? plan.variables : {}
  if (typeof variables !== 'object' || variables === null) throw bad('plan', 'its variables are none')
  return Object.fromEntries(
    Object.entries(variables).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && /^[a-z_]\w*$/i.test(entry[0])
    )
  )
}

/** Warnings may stand before it. */
function parsed(answer: string): unknown {
  try {
    return JSON.parse(answer.slice(Math.max(0, answer.search(/^\{/m))))
  } catch (error) {
    throw bad('plan', `it is not JSON: ${String(error).slice(0, 200)}`)
  }
}

const bad = (what: string, reason: string) => problems.toolNoFile({ program, what, reason })
