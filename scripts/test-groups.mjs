/**
 * Which test files share a process. A process that boots a platform for the first time pays seconds for loading and
 * compiling, of which a second platform pays a tenth.
 */

/** Of these folders the files share: they test through the platform's door, and leave the process as it was. */
const sharing =
  /^(?:plugins\/[^/]+\/test|test\/(?:access|auth|bus|cache|clock|config|contract|declarations|http|jobs|log|resources|schedules|schemas|sdk|secrets|services|structure))\//

/** Those that change what all of a process have, or measure it. */
const alone = new Set([
  'plugins/builds/test/hostile.test.ts',
  'plugins/deployments/test/loud-build.test.ts',
  'test/http/connections.test.ts',
  'test/http/fuzz.test.ts',
  'test/http/streams.test.ts'
])

/** So few that what runs at the end is short. */
const groupSize = 5

/**
 * Each group has files of one folder, in their order. Neighbours are apart: they are about the same thing, and take as long.
 * @param {readonly string[]} files
 * @returns {readonly (readonly string[])[]}
 */
export function groupsOf(files) {
  const folders = new Map()
  for (const file of files) {
    const isAlone = !sharing.test(file) || alone.has(file)
    const folder = isAlone ? file : file.slice(0, file.lastIndexOf('/'))
    folders.set(folder, [...(folders.get(folder) ?? []), file])
  }
  return [...folders.values()].flatMap(inFolder => {
    const count = Math.ceil(inFolder.length / groupSize)
    return Array.from({ length: count }, (_, at) => inFolder.filter((_, index) => index % count === at))
  })
}

/** Where the programs of groups are written, under the root. */
export const groupsFolder = '.lab/groups'

/** @param {string | undefined} program */
export const isGroup = program => program !== undefined && /\.lab\/groups\/[^/]+\.mjs$/.test(program)
