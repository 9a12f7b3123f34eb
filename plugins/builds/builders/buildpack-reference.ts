import { realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { problems } from '../problems.js'

/**
 * Refuses buildpacks that would make `pack` read files of this machine. Where an address leads is looked at when it
 * is fetched. What it accepts beside: an id with a version, an image, a registry's or the
 * builder's own (`urn:cnb:…`), an address, and a folder or archive of the repository.
 */
export async function checkBuildpacks(references: readonly string[], directory: string): Promise<void> {
  for (const reference of references) {
    const refuse = (reason: string) => problems.badBuildpack({ buildpack: reference.slice(0, 200), reason })
    if (reference.startsWith('-') || /[\s,\u0000-\u001f\\]/.test(reference))
      throw refuse('it holds a character that no reference has')
    if (/^https?:\/\//i.test(reference)) {
      if (!URL.canParse(reference)) throw refuse('it is no address')
    } else if (/^(docker:\/\/|urn:cnb:|from=builder)/.test(reference)) {
    } else if (/^[a-z][a-z0-9+.-]*:\/\//i.test(reference) || reference.startsWith('file:')) {
      throw refuse('only http, https and docker addresses are used')
    } else if (reference.startsWith('/') || reference.split('/').includes('..')) {
      throw refuse('it leads out of the repository')
    } else if (await escapesDirectory(directory, reference)) {
      throw refuse('it is a symbolic link that leads out of the repository')
    }
  }
}

/** True for what exists in the source tree and lies outside of it. */
async function escapesDirectory(directory: string, path: string): Promise<boolean> {
  const root = await realpath(directory)
  const real = await realpath(join(root, path)).catch(() => undefined)
  return real !== undefined && real !== root && !real.startsWith(root + sep)
}

/** Says itself that it is one. */
export const isImage = (reference: string): boolean => reference.startsWith('docker://')

export const withoutScheme = (reference: string): string => reference.replace(/^docker:\/+/, '')

/** The image that a reference may mean; null when it means none. */
export function imageOfBuildpack(reference: string): string | null {
  if (/^(https?:\/\/|urn:|from=)/i.test(reference)) return null
  const name = withoutScheme(reference)
  return /^[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/.test(
    name.replace(/^[\w.-]+:\d+\//, 'x/')
  )
    ? name
    : null
}
