import { askNow, type Contributions, type ExpectedAnswer, type Log } from 'busbar/sdk'
import type { BuildTypeSource } from './api.js'
import { invalid } from './problems.js'

/** The build type of what is not built. */
export const imageType = 'image'
/** What is accepted while no builder is there to check it: a deploy checks. */
const usual = ['buildpacks', 'dockerfile', 'nixpacks', 'railpack', 'static']

const mostTypes = 100
const longestType = 100

const isType = (one: unknown): one is string =>
  typeof one === 'string' && one !== '' && one.length <= longestType

const expectedTypes: Omit<ExpectedAnswer<readonly string[]>, 'log'> = {
  what: 'the build types',
  takes: `a list of at most ${mostTypes} names of at most ${longestType} characters each`,
  take: answer => {
    if (!Array.isArray(answer) || answer.length > mostTypes) return undefined
    const types = Array.from(answer as readonly unknown[])
    return types.every(isType) ? types : undefined
  }
}

/** How a repository can be built now, in the order of the alphabet. A source that answers anything but names is as one that is not there. */
export function buildTypesOf(sources: Contributions<BuildTypeSource>, log: Log): readonly string[] {
  const expected = { ...expectedTypes, log }
  const answers = sources
    .entries()
    .map(entry => askNow(entry, value => value.buildTypes(), expected))
    .filter(types => types !== undefined)
  const names = answers.length === 0 ? usual : answers.flat()
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
