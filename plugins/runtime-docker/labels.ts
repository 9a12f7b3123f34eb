import type { Owner } from './api.js'

/** Says which platform made a container, a network or a volume: two of them may share one engine. */
export const instanceLabel = 'busbar-instance'
/**
 * The same for images, under another name: a container inherits the labels of its image, and one that a
 * person starts from an image of ours must not be taken for one of our containers.
 */
export const imageInstanceLabel = 'busbar-image-instance'

const keys = {
  projectId: 'project-id',
  applicationId: 'application-id',
  deploymentId: 'deployment-id',
  databaseId: 'database-id'
} as const

type Labels = Readonly<Record<string, string>>
const fields = Object.entries(keys) as ReadonlyArray<readonly [keyof Owner, string]>

/**
 * The labels of a thing. An owner that does not apply is written as empty, so that an image cannot claim
 * by a LABEL of its own that its containers belong to somebody else.
 */
export const ownerLabels = (owner: Owner): Record<string, string> => ({
  'managed-by': 'busbar',
  ...Object.fromEntries(fields.map(([field, key]) => [key, owner[field] ?? '']))
})

/** The labels of an image. No deployment among them: it would keep every build from using the cache. */
export const imageLabels = ({ projectId, applicationId, databaseId }: Owner, instanceId: string): Record<string, string> => ({
  'managed-by': 'busbar',
  [imageInstanceLabel]: instanceId,
  ...Object.fromEntries(Object.entries(ownerLabels({ projectId, applicationId, databaseId })).filter(([, value]) => value !== ''))
})

/** Whose a thing is, from its labels. */
export const ownerOf = (labels: Labels): Owner =>
  Object.fromEntries(fields.flatMap(([field, key]) => labels[key] ? [[field, labels[key]]] : []))

/** The engine's `label` filter for things of `owner`. */
export const ownerFilter = (owner: Owner): string[] =>
  fields.flatMap(([field, key]) => owner[field] === undefined ? [] : [`${key}=${owner[field]}`])
