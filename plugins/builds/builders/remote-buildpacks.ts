import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { BuildContext } from '../api.js'
import type { HostRules } from '../network/host-resolution.js'
import { fetchRemoteFile } from '../network/remote-file.js'

/** Larger than any buildpack with its dependencies inside. */
const maxBytes = 512 * 2 ** 20
const timeoutMs = 5 * 60_000

/**
 * The references with a file of `directory` in the place of each address. `pack` would resolve the host of an address
 * anew, and follow wherever it leads.
 */
export async function fetchBuildpacks(
  references: readonly string[],
  directory: string,
  hosts: HostRules,
  { log, signal }: BuildContext
): Promise<string[]> {
  const fetched: string[] = []
  for (const [index, reference] of references.entries()) {
    if (!/^https?:\/\//i.test(reference)) {
      fetched.push(reference)
      continue
    }
    await mkdir(directory, { recursive: true })
    // Told apart from what the repository calls the same; pack reads what it is from its bytes.
    const file = join(directory, `${index}.cnb`)
    const { bytes } = await fetchRemoteFile(reference, file, hosts, { maxBytes, timeoutMs, signal })
    log({
      level: 'info',
      msg: `Fetched the buildpack ${index + 1} of ${references.length} (${Math.ceil(bytes / 1024)} KiB)`
    })
    fetched.push(file)
  }
  return fetched
}
