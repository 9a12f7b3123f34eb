/**
 * Which test files share a process. A process that boots a platform for the first time pays seconds for loading and
 * compiling, of which a second platform pays a tenth.
 */

/** Of these folders the files share: they test through the platform's door, and leave the process as it was. */
const sharing =
  /^(?:plugins\/[^/]+\/test|test\/(?:access|auth|bus|cache|clock|config|contract|declarations|jobs|log|resources|schedules|schemas|sdk|secrets|services|structure))\//

/** Those that change what all of a process have, or measure it. */
const alone = new Set(['plugins/builds/test/hostile.test.ts', 'plugins/deployments/test/loud-build.test.ts'])

/** A group has files of one folder, in their order; as few that what runs at the end is short. */
const groupSize = 5

/** @param {readonly string[]} files @returns {readonly (readonly string[])[]} */
export function groupsOf(files) {
  const groups = []
  const open = new Map()
  for (const file of files) {
    if (!sharing.test(file) || alone.has(file)) {
      groups.push([file])
      continue
    }
    const folder = file.slice(0, file.lastIndexOf('/'))
    const group = open.get(folder)
    if (group !== undefined && group.length < groupSize) group.push(file)
    else {
      const begun = [file]
      open.set(folder, begun)
      groups.push(begun)
    }
  }
  return groups
}

/** Where the programs of groups are written, under the root. */
export const groupsFolder = '.lab/groups'

/** @param {string | undefined} program */
export const isGroup = program => program !== undefined && /\.lab\/groups\/[^/]+\.mjs$/.test(program)
