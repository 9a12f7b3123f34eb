const longest = 63
const suffixLength = 8

/**
 * `<project slug>-<base>-<first 8 hex of the id>`: the name of its container and of its host, so at most 63 characters, of which
 * the last 8 are always kept.
 */
export function databaseSlug(projectSlug: string, base: string, id: string): string {
  const readable = `${projectSlug}-${slugify(base) || 'db'}`
    .slice(0, longest - suffixLength - 1)
    .replace(/-$/, '')
  return `${readable}-${id.slice(0, suffixLength)}`
}

const slugify = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')

export const volumeOf = (slug: string): string => `${slug}-vol`
/** Beside the one that is in use; its name says of which it is. */
export const nextVolumeOf = (slug: string, suffix: string): string => `${slug}-vol-${suffix}`
/** `next`: what is to take the place of the present one. `source`: the present data, served to nobody else. `check`: thrown away. */
export type SideRole = 'next' | 'source' | 'check'
/** A server beside the one that serves. */
export const sideName = ({ slug }: { readonly slug: string }, role: SideRole): string => `${slug}-${role}`
/** Of a throwaway copy. */
export const checkVolumeOf = (slug: string, suffix: string): string => nextVolumeOf(slug, `check-${suffix}`)
/** Never one with data that somebody keeps, whatever people have called their database. */
export const isCheckVolume = (name: string): boolean => /-vol-check-[0-9a-f]{8}$/.test(name)
