const longest = 63
const suffixLength = 8

/** Lower-case letters and digits joined by single hyphens. */
export const slugify = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')

/**
 * `<project slug>-<base>-<first 8 hex of the id>`: container name, DNS name and image name in one, so at
 * most 63 characters, of which the last 8 are always kept.
 */
export function applicationSlug(projectSlug: string, base: string, id: string): string {
  const readable = `${projectSlug}-${slugify(base) || 'app'}`
    .slice(0, longest - suffixLength - 1)
    .replace(/-$/, '')
  return `${readable}-${id.slice(0, suffixLength)}`
}
