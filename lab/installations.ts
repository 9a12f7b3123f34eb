import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bridgePrefix, installationTag } from '../plugins/runtime-docker/host/installation-tag.js'

/** A line for each installation that tests have taken away since `npm test` began. */
export const installationsFile = join(import.meta.dirname, '..', '.lab', 'installations')

/** Their ids. */
export const readInstallations = async (): Promise<readonly string[]> =>
  [...new Set((await readFile(installationsFile, 'utf8').catch(() => '')).split('\n'))].filter(
    id => id !== ''
  )

/**
 * Which lines of a look (`leftovers.ts`) are about what one of these installations, or the test cluster, has left: by its id, or by the
 * tag in the names of its control groups, bridges and chains. On a machine that others use too, the rest may be theirs.
 */
export function leftByTests(lines: readonly string[], installations: readonly string[]): string[] {
  const marks = installations.flatMap(id => {
    const tag = installationTag(id)
    return [id, `/busbar${tag}`, `interface ${bridgePrefix(id)}`, `BUSBAR-${tag}-`]
  })
  return lines.filter(line => line.startsWith('database ') || marks.some(mark => line.includes(mark)))
}
