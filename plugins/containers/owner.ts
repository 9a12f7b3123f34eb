/**
 * Whose a thing on the engine is. Everything that is made carries it, and what the engine answers is verified: no
 * container, image or label says of itself whose it is. To list by an owner lists what belongs to every given id.
 */
export interface Owner {
  readonly projectId?: string
  readonly applicationId?: string
  readonly deploymentId?: string
  readonly databaseId?: string
}

/** The labels that name the owner of a thing on the engine, for people and for programs that read labels. */
export const ownerKeys = {
  projectId: 'project-id',
  applicationId: 'application-id',
  deploymentId: 'deployment-id',
  databaseId: 'database-id'
} as const satisfies Record<keyof Owner, string>
