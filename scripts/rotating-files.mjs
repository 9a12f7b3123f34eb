/**
 * Families of test files that ask about the same of one more kind, moment or machine, most with an engine of their own. `npm
 * test` runs the files that matter most and a few of the others; a file that is named always runs.
 */
import { rotatingSample } from './rotating-sample.mjs'

const families = [
  {
    // A sample within one file.
    title: 'what neighbours do while plugins are off',
    files: /^test\/kernel\/off-and-on\.test\.ts$/,
    always: ['test/kernel/off-and-on.test.ts'],
    others: 0
  },
  {
    // A sample within one file.
    title: 'malformed values of one field',
    files: /^test\/http\/malformed\.test\.ts$/,
    always: ['test/http/malformed.test.ts'],
    others: 0
  },
  {
    // A sample within one file.
    title: 'Dockerfiles as people write them',
    files: /^plugins\/builds\/test\/ordinary-builds\.test\.ts$/,
    always: ['plugins/builds/test/ordinary-builds.test.ts'],
    others: 0
  },
  {
    title: 'what build engines do, and their faults',
    files: /^plugins\/builds\/test\/build-engine-/,
    always: [
      'plugins/builds/test/build-engine-docker.test.ts',
      'plugins/builds/test/build-engine-docker-26.test.ts'
    ],
    others: 3
  },
  {
    title: 'kill -9 of an engine during a deploy',
    files: /^plugins\/deployments\/test\/engine-crash-/,
    always: ['plugins/deployments/test/engine-crash-steps.test.ts'],
    others: 1
  },
  {
    // A sample within one file.
    title: 'a fault at a boundary of a deploy',
    files: /^plugins\/deployments\/test\/faults\.test\.ts$/,
    always: ['plugins/deployments/test/faults.test.ts'],
    others: 0
  },
  {
    title: 'kill -9 of an engine while something else than a deploy is under way',
    files:
      /^plugins\/(?:terminal\/test\/engine-lost(?:-live-restore)?|metrics\/test\/faults|logs\/test\/killed-engine|deployments\/test\/health-engine)\.test\.ts$/,
    always: [],
    others: 2
  },
  {
    title: 'kill -9 of the platform or its database during a deploy',
    files:
      /^plugins\/deployments\/test\/(?:crash|crash-(?:after-switch|before-switch|pull)|database-crash)\.test\.ts$/,
    always: ['plugins/deployments/test/crash.test.ts'],
    others: 1
  },
  {
    title: 'many deploys at once, and deploys of what ends slowly',
    files:
      /^plugins\/deployments\/test\/(?:many-(?:applications|deploys)|deploys-(?:in-a-row|under-load)|owner-turns|build-queue|sigterm-ignored(?:-deploys)?)\.test\.ts$/,
    always: ['plugins/deployments/test/deploys-under-load.test.ts'],
    others: 2
  },
  {
    title: 'what the platform sets up on the machine of an engine, and takes away',
    files:
      /^plugins\/runtime-docker\/test\/(?:host-(?:limits|rules)|network-(?:many|routes|subnets)|build-hosts|file-use|left-volumes|emptying|load|runs-containers)\.test\.ts$/,
    always: ['plugins/runtime-docker/test/host-rules.test.ts'],
    others: 3
  },
  {
    title: 'who fills a disk',
    files:
      /^plugins\/(?:builds\/test\/(?:engine-room|engine-holder|hidden-files)|deployments\/test\/(?:disk-(?:full|images|owners|watch)|short-disk|nameless-files|(?:application|build)-(?:disk|files)))\.test\.ts$/,
    always: ['plugins/deployments/test/disk-owners.test.ts', 'plugins/deployments/test/disk-watch.test.ts'],
    others: 2
  },
  {
    title: 'databases of several engines, volumes, and their faults',
    files:
      /^plugins\/(?:databases\/test\/(?:(?:mysql-|given-up-)?upgrade|backups|mariadb-backup|(?:upgrade-|engine-)?crash|deleted-while-busy|faults|short-disk|some-databases|engines|owners-turns|postgres-dump|control-hold|file-archives)|backups\/test\/(?:real-postgres|killed|faults)|volumes\/test\/(?:engine-away|short-disk))\.test\.ts$/,
    always: ['plugins/databases/test/upgrade.test.ts', 'plugins/backups/test/real-postgres.test.ts'],
    others: 4
  }
]

/** Those of which a run of everything takes turns. */
export const ofFamilies = files =>
  files.filter(file => families.some(({ files: pattern }) => pattern.test(file)))

export function withoutThoseOfOtherCommits(files) {
  const left = new Set()
  for (const { title, files: pattern, always, others } of families) {
    const family = files.filter(file => pattern.test(file))
    if (family.length < 2) continue
    const chosen = rotatingSample(title, family, {
      always: always.filter(one => family.includes(one)),
      others
    })
    for (const file of family) if (!chosen.has(file)) left.add(file)
  }
  return files.filter(file => !left.has(file))
}
