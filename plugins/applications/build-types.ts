import type { Contributions } from 'busbar/sdk'
import type { BuildTypeSource } from './api.js'
import { invalid } from './problems.js'

/** The build type of what is not built. */
export const imageType = 'image'
/** What is accepted while no builder is there to check it: a deploy checks. */
const usual = ['buildpacks', 'dockerfile', 'nixpacks', 'railpack', 'static']

/** How a repository can be built now, in the order of the alphabet. */
export function buildTypesOf(sources: Contributions<BuildTypeSource>): readonly string[] {
  const entries = sources.entries()
  const names = entries.length === 0 ? usual : entries.flatMap(({ value }) => value.buildTypes())
  return [...new Set(names)].filter(name => name !== imageType).sort()
}

/** Throws a 400 that lists what there is. What is stored already is kept although its plugin may be off. */
export function requireBuildType(
  field: 'build_type' | 'build_type_override',
  type: string,
  available: readonly string[],
  stored?: string | null
): string {
  if (type === stored || available.includes(type)) return type
  const empty = field === 'build_type_override' ? 'empty or ' : ''
  throw invalid(
    field,
    `must be ${empty}one of ${available.join(', ')} for a git application (image is for image applications); GET /api/builders says more`
  )
}
