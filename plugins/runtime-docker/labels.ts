import { type Owner, ownerKeys } from 'busbar/api/containers'

/** Says which platform made a container, a network or a volume: two of them may share one engine. */
export const instanceLabel = 'busbar-instance'
/**
 * The same for images, under another name: a container inherits the labels of its image, and one that a
 * person starts from an image of ours must not be taken for one of our containers.
 */
export const imageInstanceLabel = 'busbar-image-instance'
/** Proves the labels of an image, a network or a volume. See `Identity`. */
export const signatureLabel = 'busbar-signature'

/** What a platform has on the engine for itself. */
export const systemLabel = 'busbar-system'
/** Of a container that holds the volumes of one that has gone. */
export const holderSystem = 'volume-holder'
/** Of one that holds the files that another one has mounted; and, of that one, the label with the id of the first. */
export const fileHolderSystem = 'file-holder'
export const filesLabel = 'busbar-files'

/** Of a network for builds: `builds`. */
export const purposeLabel = 'busbar-network'

export type Labels = Readonly<Record<string, string>>
const fields = Object.entries(ownerKeys) as ReadonlyArray<readonly [keyof Owner, string]>
/** Beside these, every key that begins with `busbar-` means something to a platform, or may to a later one. */
const reserved = [
  'managed-by',
  ...Object.values(ownerKeys),
  instanceLabel,
  imageInstanceLabel,
  signatureLabel,
  systemLabel
]

/** Every reserved key, and those of `others` that are, with nothing in it: what is inherited says no more. */
export const emptyLabels = (others: Labels = {}): Record<string, string> =>
  Object.fromEntries([...reserved, ...Object.keys(others).filter(isOfPlatform)].map(key => [key, '']))

/** The labels of whatever belongs to `owner`. One that does not apply is empty, so that it is not inherited. */
export const ownerLabels = (owner: Owner): Record<string, string> => ({
  'managed-by': 'busbar',
  ...Object.fromEntries(fields.map(([field, key]) => [key, owner[field] ?? '']))
})

/** Whose a thing is by its labels, which is no more than a claim: any image can carry any label. See `Identity`. */
export const claimedOwner = (labels: Labels): Owner =>
  Object.fromEntries(fields.flatMap(([field, key]) => (labels[key] ? [[field, labels[key]]] : [])))

/** All of an owner, as one text. */
export const ownerText = (owner: Owner): string => JSON.stringify(fields.map(([field]) => owner[field] ?? ''))

/** Whether what is verified to be of `owner` is among what is asked for by `wanted`: every id of it. Never, if it has no owner. */
export const isAmong = (wanted: Owner, owner: Owner | undefined): boolean =>
  owner !== undefined &&
  fields.every(([field]) => wanted[field] === undefined || wanted[field] === owner[field])

/** The engine's `label` filter for things of `owner`. It only makes a list shorter: what is in it is still to be verified. */
export const ownerFilter = (owner: Owner): string[] =>
  fields.flatMap(([field, key]) => (owner[field] === undefined ? [] : [`${key}=${owner[field]}`]))

/**
 * The first label by which a step of a build would pass for something else than `expected`. A step may have none of
 * them, or not all: then it comes before the LABEL that sets them, and what is set no LABEL takes away.
 */
export function unexpectedLabel(labels: Labels, expected: Labels): string | undefined {
  const own = Object.keys(labels).filter(isOfPlatform)
  if (own.length === 0) return undefined
  return [...own, ...Object.keys(expected)].find(
    key => labels[key] !== undefined && labels[key] !== (expected[key] ?? '')
  )
}

const isOfPlatform = (key: string): boolean => key.startsWith('busbar-')
