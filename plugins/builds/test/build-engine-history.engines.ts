import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startLab } from '../../runtime-docker/test/lab.js'
import { buildkitProgram } from '../engines/buildkit-program.js'
import { workPath } from '../engines/engine-program.js'
import { ProjectEngines } from '../engines/project-engines.js'
import { engineKinds, makeImage } from './engine-lab.js'
import { clock, log, ownEngineKinds } from './kit.js'

const secret = 'a-secret-that-is-told'
const dockerfile = `FROM scratch
COPY . /
RUN --mount=type=secret,id=TOKEN cat /run/secrets/TOKEN && echo && echo printed
`
const limits = { memoryBytes: 2 ** 30, cpus: 1 }

test('a BuildKit keeps nothing of what a build has printed', async t => {
  if (!(await requireEngine(t))) return
  await makeImage(engineKinds.BuildKit)
  const { runtime, projectId, spec, docker } = startLab(t)
  const engines = new ProjectEngines({
    kinds: ownEngineKinds(),
    runtime,
    clock,
    log,
    records: { used: async () => {}, stopped: async () => {}, removed: async () => {}, live: async () => [] },
    cacheBytes: 2 ** 30
  })
  const image = (await docker.getImage(engineKinds.BuildKit.image).inspect()).Id
  const signal = new AbortController().signal
  const owner = { projectId, applicationId: randomUUID() }
  const shell = await runtime.create(spec('shell', await runtime.ensureBuildNetwork(projectId), { owner }))
  await runtime.start(shell)
  const directory = `${workPath}/${randomUUID()}`
  let engineId = ''
  const run = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const lines: string[] = []
    const onLine = ({ text }: { readonly text: string }): void => void lines.push(text)
    const code = await runtime.exec(engineId, argv, { env, signal, onLine })
    return { code, text: lines.join('\n') }
  }
  const build = { deploymentId: randomUUID(), limits }
  await engines.use(
    { projectId, program: buildkitProgram, image },
    build,
    signal,
    async ({ containerId }) => {
      engineId = containerId
      await run(['mkdir', '-p', `${directory}/context`, `${directory}/dockerfile`])
      await run(['sh', '-c', 'printf %s "$1" > "$0/dockerfile/Dockerfile"', directory, dockerfile])
      for (const path of ['/usr', '/bin', '/lib', '/lib64']) {
        const files = await runtime.getFiles(shell, path, { signal })
        await runtime.putFiles(engineId, `${directory}/context`, files, { signal })
      }
      const { argv, env } = buildkitProgram.build({
        directory,
        file: 'Dockerfile',
        buildArgs: {},
        secrets: { TOKEN: secret },
        noCache: false,
        bases: [],
        missing: []
      })
      const built = await run(argv, env)
      t.equal(built.code, 0, built.text)
      t.match(built.text, secret)
    }
  )
  const kept = await run([
    'sh',
    '-c',
    'grep -rlF "$0" /var/lib/builder; buildctl --addr unix:///run/buildkit/buildkitd.sock prune-histories | tail -n +2',
    secret
  ])
  t.equal(kept.text, '')
  await runtime.remove(shell)
  await engines.remove(projectId)
})
