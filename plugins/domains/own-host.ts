import type { NamedApplication } from './routing-store.js'

const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The names that an application may get, the best first: `<application>-<project>.localhost`, then its slug, which nothing else
 * ever has. Browsers and most resolvers take all of `.localhost` for this machine.
 */
export function ownHostCandidates({
  slug,
  project_slug
}: Pick<NamedApplication, 'slug' | 'project_slug'>): readonly string[] {
  const inner = slug.startsWith(`${project_slug}-`) ? slug.slice(project_slug.length + 1) : slug
  const application = inner.replace(/-[0-9a-f]{8}$/, '')
  return [`${application}-${project_slug}`, slug]
    .filter(name => label.test(name))
    .map(name => `${name}.localhost`)
}
