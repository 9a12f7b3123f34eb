const longest = 40

/** A name as it is kept: lower-case letters and digits, joined by single hyphens. Undefined where nothing of it is left, or too much. */
export function volumeNameOf(text: string): string | undefined {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  return name === '' || name.length > longest ? undefined : name
}

/** What the volume of an application is called on the engine. */
export const engineNameOf = (applicationId: string, name: string): string =>
  `${enginePrefixOf(applicationId)}${name}`

export const enginePrefixOf = (applicationId: string): string => `busbar-vol-${applicationId.slice(0, 8)}-`
export const enginePrefixLength = enginePrefixOf('00000000').length

/** What a restore unpacks into. No volume of a user has such a name. */
export const sparePrefix = 'busbar-spare-'
