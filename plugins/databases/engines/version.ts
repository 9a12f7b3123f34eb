/** The first number of a version, `16` of `16.3-alpine`; null of one that begins with none. */
export function majorOf(version: string): number | null {
  const digits = /^\d{1,6}/.exec(version)?.[0]
  return digits === undefined ? null : Number(digits)
}

/** Data of a newer server cannot be read by an older one. Versions that begin with no number are not compared. */
export function olderMajor(from: string, to: string): string | null {
  const [present, target] = [majorOf(from), majorOf(to)]
  return present !== null && target !== null && target < present
    ? `version ${to} is older than ${from}, and cannot read its data`
    : null
}
