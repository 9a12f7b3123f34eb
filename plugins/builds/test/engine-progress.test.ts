import t from 'tap'
import type { BuildLogLine } from '../api.js'
import { engineBuildProblem } from '../engines/engine-failure.js'
import { readProgress } from '../engines/plain-progress.js'
import { StepLog } from '../engines/step-log.js'
import { RegistryFailure, registryProblem } from '../registry/client/registry-failure.js'

t.test('a line of progress says a step, its output or its end', async t => {
  const cases: ReadonlyArray<readonly [string, object | undefined]> = [
    ['', undefined],
    ['#6 ...', undefined],
    ['#6 [build 2/4] RUN npm ci', { kind: 'step', step: 6, name: '[build 2/4] RUN npm ci' }],
    ['#6 0.350 uid=0(root)', { kind: 'output', step: 6, text: 'uid=0(root)' }],
    ['#6 12.350 ', { kind: 'output', step: 6, text: '' }],
    ['#6 12.350', { kind: 'output', step: 6, text: '' }],
    ['#6 DONE 0.4s', { kind: 'done', step: 6, seconds: 0.4 }],
    ['#12 CACHED', { kind: 'cached', step: 12 }],
    ['#12 CANCELED', { kind: 'cancelled', step: 12 }],
    ['#7 ERROR: process "x" did not', { kind: 'failed', step: 7, reason: 'process "x" did not' }],
    [
      '#5 transferring context: 32B done',
      { kind: 'status', step: 5, text: 'transferring context: 32B done' }
    ],
    ['ERROR: failed to solve: x', { kind: 'text', text: 'ERROR: failed to solve: x' }],
    ['#', { kind: 'text', text: '#' }],
    ['#1', { kind: 'text', text: '#1' }],
    ['#x 1', { kind: 'text', text: '#x 1' }],
    [`#${'9'.repeat(30)} 0.1 x`, { kind: 'text', text: `#${'9'.repeat(30)} 0.1 x` }]
  ]
  for (const [line, event] of cases) t.strictSame(readProgress(line), event, line)
})

t.test('what the client of BuildKit writes for its makers is told to them alone', async t => {
  const line =
    'time="2026-11-25T22:59:52Z" level=error msg="(*service).Write failed" error="rpc error: code = Unavailable desc = ref layer-sha256:5f locked for 1.5ms: unavailable"'
  const { log, steps } = logOf([line, 'ERROR: failed to solve: x'])
  t.strictSame(
    log.map(({ level }) => level),
    ['debug', 'info']
  )
  t.equal(steps.ending.text[0], line, 'it may hold the reason all the same')
})

t.test('what a command prints cannot look like another step', async t => {
  for (const text of ['#9 DONE 0.1s', '#1 [other] RUN x', 'ERROR: failed to solve: y'])
    t.strictSame(readProgress(`#6 0.350 ${text}`), { kind: 'output', step: 6, text })
})

const logOf = (lines: readonly string[]): { readonly log: BuildLogLine[]; readonly steps: StepLog } => {
  const log: BuildLogLine[] = []
  const steps = new StepLog(line => log.push(line))
  for (const line of lines) steps.read(line)
  return { log, steps }
}

t.test('the log tells each step once, its output, how long it took and what came from the cache', async t => {
  const { log } = logOf([
    '#1 [internal] load build definition from Dockerfile',
    '#1 DONE 0.0s',
    '#2 [1/2] FROM busybox',
    '#2 CACHED',
    '#3 [2/2] RUN make',
    '#3 0.100 one',
    '#3 ...',
    '',
    '#3 [2/2] RUN make',
    '#3 0.200 two',
    '#3 DONE 1.3s',
    '#4 exporting to image',
    '#4 exporting layers done'
  ])
  t.strictSame(
    log.filter(({ level }) => level !== 'debug').map(({ msg }) => msg),
    [
      '[1/2] FROM busybox',
      '[1/2] is taken from the cache',
      '[2/2] RUN make',
      'one',
      'two',
      '[2/2] is done after 1.3 s',
      'exporting to image'
    ]
  )
  t.strictSame(
    log.filter(({ stream }) => stream === 'stdout' && true).map(({ msg }) => msg),
    ['one', 'two', 'exporting layers done']
  )
})

const problemOf = (
  lines: readonly string[],
  frontEnd?: string,
  refusals?: Parameters<typeof engineBuildProblem>[1]['refusals']
) =>
  engineBuildProblem(logOf(lines).steps.ending, {
    dockerfile: 'Dockerfile',
    memoryBytes: 512 * 2 ** 20,
    exitCode: 1,
    ...(refusals !== undefined && { refusals }),
    ...(frontEnd !== undefined && { frontEnd })
  })

t.test('a failed build says which command failed, and how', async t => {
  const words = 'process "/bin/sh -c echo \\"a\\" && exit 3" did not complete successfully: exit code: 3'
  const problem = problemOf(['#3 [2/2] RUN x', `#3 ERROR: ${words}`, `ERROR: failed to solve: ${words}`])
  t.equal(problem.code, 'E_BUILD_COMMAND')
  t.match(problem.message, 'echo \\"a\\" && exit 3 ended with exit code 3')
})

t.test('a command that was killed took too much memory', async t => {
  const words = 'process "/bin/sh -c hog" did not complete successfully: exit code: 137'
  const problem = problemOf([`#3 ERROR: ${words}`, `error: failed to solve: ${words}`])
  t.equal(problem.code, 'E_BUILD_KILLED')
  t.match(problem.message, '512 MiB')
})

t.test('what BuildKit says of a Dockerfile, a missing file, a base and a disk has its own code', async t => {
  const cases = [
    ['dockerfile parse error on line 3: unknown instruction: FORM', 'E_BUILD_DOCKERFILE'],
    [
      "executor failed running [/bin/sh -c true]: no available IPv4 addresses on this network's address pools: bridge (b32d)",
      'E_BUILD_STEPS'
    ],
    ['failed to prepare u5qt7vbtr0ev44p2fcdice4b3: max depth exceeded', 'E_BUILD_LAYERS'],
    ['failed to solve: dockerfile parse error on line 3: unknown instruction: FORM', 'E_BUILD_DOCKERFILE'],
    ["unexpected key 'env' in 'env=API_KEY'", 'E_BUILD_DOCKERFILE'],
    ['target stage "x" could not be found', 'E_BUILD_DOCKERFILE'],
    [
      'failed to compute cache key: failed to calculate checksum of ref a::b: "/x": not found',
      'E_BUILD_COPY'
    ],
    ['node:99: failed to resolve source metadata for docker.io/library/node:99: not found', 'E_BUILD_BASE'],
    ['write /x: no space left on device', 'E_ENGINE_DISK_FULL'],
    ['something else', 'E_BUILD_FAILED']
  ] as const
  for (const [words, code] of cases) {
    const begun = words.startsWith('failed to solve') ? words : `failed to solve: ${words}`
    t.equal(problemOf([`ERROR: ${begun}`]).code, code, words)
    t.notMatch(problemOf([`ERROR: ${begun}`]).message, 'failed to solve')
  }
})

t.test(
  'a disk that is full while the image is taken out of the engine is told, in whichever words of tar',
  async t => {
    for (const words of [
      'tar: 1f/layer.tar: Cannot write: No space left on device',
      'tar: 4e/layer.tar: Wrote only 7680 of 10240 bytes'
    ])
      t.equal(
        problemOf(['exporting layers', words, 'tar: Exiting with failure status due to previous errors'])
          .code,
        'E_ENGINE_DISK_FULL',
        words
      )
  }
)

t.test('a front-end that is not there is told apart from what it asks for itself', async t => {
  const frontEnd = 'ghcr.io/team/front-end:v1'
  const wrapped = `failed with build-arg:BUILDKIT_SYNTAX = ${frontEnd}: `
  const cases = [
    [
      `${frontEnd}: failed to resolve source metadata for ${frontEnd}: ${frontEnd}: not found`,
      'E_BUILD_FRONT_END'
    ],
    [
      `${wrapped}failed to solve with frontend gateway.v0: failed to do request: Head "https://ghcr.io/v2/team/front-end/manifests/v1": EOF`,
      'E_BUILD_FRONT_END'
    ],
    [`${wrapped}failed to resolve source metadata for docker.io/library/alpine:latest: EOF`, 'E_BUILD_BASE'],
    [`${wrapped}failed to compute cache key: "/x": not found`, 'E_BUILD_COPY'],
    // Of a Dockerfile its author knows nothing.
    [`${wrapped}dockerfile parse error on line 1: unknown instruction: {`, 'E_BUILD_FAILED']
  ] as const
  for (const [words, code] of cases) {
    const problem = problemOf([`ERROR: failed to solve: ${words}`], frontEnd)
    t.equal(problem.code, code, words)
    t.notMatch(problem.message, 'failed with build-arg')
  }
})

t.test(
  'a base that no registry hands out says what helps: of the account that was refused, or how to give one',
  async t => {
    const image = 'ghcr.io/team/base:1'
    const words = `${image}: failed to resolve source metadata for ${image}: failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://ghcr.io/token: 401 Unauthorized`
    const lines = [`ERROR: failed to solve: ${words}`]
    t.match(problemOf(lines), {
      code: 'E_BUILD_BASE',
      message:
        /neither the project nor the installation has an account .*PUT \/api\/projects\/<id>\/registries/
    })
    for (const denied of [
      'failed to solve with frontend dockerfile.v0: failed to create LLB definition: pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
      `failed to solve: ${image}: failed to do request: Head "https://ghcr.io/v2/team/base/manifests/1": 401 Unauthorized`
    ])
      t.match(problemOf([`ERROR: ${denied}`]).message, /has an account/, denied)
    const refusal = registryProblem(new RegistryFailure('credentials', ''), {
      image,
      registry: 'ghcr.io',
      name: 'ghcr.io/team/base',
      version: '1',
      as: { username: 'deployer', of: 'installation' }
    })
    t.equal(problemOf(lines, undefined, new Map([[image, refusal]])), refusal)
    t.match(refusal.message, /deployer and its password, the account of the installation.*an admin has to/)
    t.match(problemOf(lines, undefined, new Map([['ghcr.io/other:1', refusal]])), { code: 'E_BUILD_BASE' })
  }
)

t.test('a file that an older engine does not find is no image', async t => {
  const problem = problemOf([
    '#8 [3/4] COPY src/ ./src',
    '#8 ERROR: "/src" not found: not found',
    'failed to compute cache key: "/src" not found: not found'
  ])
  t.equal(problem.code, 'E_BUILD_COPY')
  t.match(problem.message, 'the build stopped: "/src" not found')
})

t.test('an image that does not fit onto the disk beside its steps is told as such', async t => {
  const problem = problemOf([
    '#5 [2/2] RUN make',
    '#5 DONE 0.3s',
    'tar: 1b2c/layer.tar: Cannot write: No space left on device',
    'tar: Exiting with failure status due to previous errors'
  ])
  t.equal(problem.code, 'E_ENGINE_DISK_FULL')
})

t.test('a build that says nothing ended with a code', async t => {
  t.match(problemOf([]).message, 'ended with code 1')
})

t.test('only the last words of a build are kept', async t => {
  const { steps } = logOf(Array.from({ length: 5000 }, (_, at) => `line ${at}`))
  t.equal(steps.ending.text.length, 200)
  t.equal(steps.ending.text.at(-1), 'line 4999')
})
