const allowed = /^[A-Za-z0-9._~/-]*$/

/** A path as it is kept: one slash in front, none at its end; undefined for what is none. */
export function readPath(written: string): string | undefined {
  const given = written.trim()
  if (given.length > 255 || !allowed.test(given) || given.includes('//')) return undefined
  const segments = given.split('/').filter(segment => segment !== '')
  if (segments.some(segment => segment === '.' || segment === '..')) return undefined
  return `/${segments.join('/')}`
}
