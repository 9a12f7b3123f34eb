import { parseArgs } from 'node:util'

export interface Options {
  /** Files and folders that are tried. */
  readonly paths: readonly string[]
  readonly files: number
  readonly mutants: number
  readonly minutes: number
  readonly jobs: number
  /** How long the tests of one defect may take in all. */
  readonly seconds: number
  /** How many files of tests are asked of one file, at most. */
  readonly tests: number
  readonly seed: string
  readonly engine: boolean
  readonly unit: boolean
  readonly floor: number
}

const usage = `npm run test:mutants -- [files and folders] [options]
  --files N     how many files, chosen by the seed (all)
  --mutants N   how many defects in each of them (6)
  --minutes M   no further defect after this time (60)
  --seconds N   how long the tests that are asked of one defect take in all (90)
  --tests N     how many of the nearest files of tests, at most (10)
  --jobs J      how many at a time (1)
  --seed S      what is chosen (the commit)
  --engine      ask tests that need DOCKER_HOST too: a defect may remove what others have on that engine
  --unit        ask only tests that start neither a platform nor a database
  --floor P     the percentage to reach (85)`

export function readOptions(args: readonly string[], seed: string): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      files: { type: 'string' },
      mutants: { type: 'string', default: '6' },
      minutes: { type: 'string', default: '60' },
      seconds: { type: 'string', default: '90' },
      tests: { type: 'string', default: '10' },
      jobs: { type: 'string', default: '1' },
      seed: { type: 'string', default: seed },
      unit: { type: 'boolean', default: false },
      engine: { type: 'boolean', default: false },
      floor: { type: 'string', default: '85' }
    }
  })
  return {
    paths: positionals.length === 0 ? defaultPaths : positionals,
    files: values.files === undefined ? Number.POSITIVE_INFINITY : positive('files', values.files),
    mutants: positive('mutants', values.mutants),
    minutes: positive('minutes', values.minutes),
    seconds: positive('seconds', values.seconds),
    tests: positive('tests', values.tests),
    jobs: positive('jobs', values.jobs),
    seed: values.seed,
    unit: values.unit,
    engine: values.engine,
    floor: positive('floor', values.floor)
  }
}

/** `core/` and what plugins decide without asking anybody. */
const defaultPaths: readonly string[] = [
  'core',
  ...['rollout', 'traffic', 'health', 'queue', 'records'].map(folder => `plugins/deployments/${folder}`),
  ...['admission', 'disk', 'dockerfile'].map(folder => `plugins/builds/${folder}`),
  'plugins/direct',
  'plugins/applications',
  'plugins/identity'
]

function positive(name: string, value: string): number {
  const number = Number(value)
  if (!(number > 0)) throw new Error(`--${name} is a number above 0, not ${value}\n${usage}`)
  return number
}
