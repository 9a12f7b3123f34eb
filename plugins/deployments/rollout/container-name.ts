const longest = 63
const marked = 9

/**
 * The container that serves is named by its application's slug. This is the name of a container that does
 * not: the slug and the first eight characters of its deployment's id, which stay whole when the name
 * must be cut to what DNS allows.
 */
export const candidateName = (slug: string, deploymentId: string): string =>
  `${slug.slice(0, longest - marked).replace(/-$/, '')}-${deploymentId.slice(0, 8)}`
