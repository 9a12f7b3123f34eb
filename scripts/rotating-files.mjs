/**
 * Families of test files that ask the same of one more kind, builder or moment, each with an engine of its own. `npm test`
 * runs the files that matter most and a few of the others; a file that is named always runs.
 */
import { rotatingSample } from './rotating-sample.mjs'

const families = [
  {
    title: 'what build engines do, and their faults',
    files: /^plugins\/builds\/test\/build-engine-/,
    always: [
      'plugins/builds/test/build-engine-docker.test.ts',
      'plugins/builds/test/build-engine-docker-26.test.ts'
    ],
    others: 5
  },
  {
    title: 'kill -9 of an engine during a deploy',
    files: /^plugins\/deployments\/test\/engine-crash-/,
    always: ['plugins/deployments/test/engine-crash-steps.test.ts'],
    others: 2
  },
  {
    title: 'who fills a disk',
    files:
      /^plugins\/(?:builds\/test\/(?:engine-room|engine-holder|hidden-files)|deployments\/test\/(?:disk-(?:full|images|owners|watch)|short-disk|nameless-files|(?:application|build)-(?:disk|files)))\.test\.ts$/,
    always: ['plugins/deployments/test/disk-owners.test.ts', 'plugins/deployments/test/disk-watch.test.ts'],
    others: 4
  }
]

/** @param {readonly string[]} files */
export function withoutThoseOfOtherCommits(files) {
  const left = new Set()
  for (const { title, files: pattern, always, others } of families) {
    const family = files.filter(file => pattern.test(file))
    if (family.length === 0) continue
    const chosen = rotatingSample(title, family, {
      always: always.filter(one => family.includes(one)),
      others
    })
    for (const file of family) if (!chosen.has(file)) left.add(file)
  }
  return files.filter(file => !left.has(file))
}
