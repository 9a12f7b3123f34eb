import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import type { GitFiles } from '../../../lab/git-server.js'
import { type DeployLab, engine, openLab } from '../../deployments/test/deploy-lab.js'

/** A build engine that can be had on this machine. */
export interface EngineKind {
  readonly build_engine: 'buildkit' | 'dockerd'
  readonly image: string
  /** What makes its image: a script in `lab/`, with its arguments. */
  readonly made: readonly [script: string, ...argv: string[]]
  /** It knows what BuildKit learnt later: heredocs, `COPY --link`. */
  readonly isNew: boolean
  /** The version of Docker whose syntax it knows. */
  readonly docker: number
}

export const engineKinds = {
  'the Docker Engine of this machine': {
    build_engine: 'dockerd',
    image: 'docker:lab',
    made: ['make-images.sh', 'docker'],
    isNew: false,
    docker: 20
  },
  'a newer Docker Engine': {
    build_engine: 'dockerd',
    image: 'docker:26-lab',
    made: ['make-images.sh', 'docker-26'],
    isNew: true,
    docker: 26
  },
  BuildKit: {
    build_engine: 'buildkit',
    image: 'moby/buildkit:lab',
    made: ['make-buildkit.sh'],
    isNew: true,
    docker: 28
  }
} as const satisfies Readonly<Record<string, EngineKind>>

const labFolder = join(import.meta.dirname, '../../../lab')

export const imageSetting = ({ build_engine }: EngineKind): 'buildkit_image' | 'dockerd_image' =>
  build_engine === 'buildkit' ? 'buildkit_image' : 'dockerd_image'

/** Of the builds plugin, to build with such an engine. */
export const settingsOf = (kind: EngineKind): Readonly<Record<string, unknown>> => ({
  build_engine: kind.build_engine,
  [imageSetting(kind)]: kind.image,
  memory_mib: 1024,
  static_image: 'nginx:lab',
  static_build_image: 'node:20'
})

/** Unless it is there. */
export async function makeImage({ made: [script, ...argv] }: EngineKind): Promise<void> {
  await promisify(execFile)(join(labFolder, script), argv)
}

/** A platform that builds with such an engine. */
export async function openEngineLab(
  t: Test,
  kind: EngineKind,
  settings: Readonly<Record<string, unknown>> = {},
  environment: Readonly<Record<string, string>> = {}
): Promise<DeployLab> {
  await makeImage(kind)
  await promisify(execFile)(join(labFolder, 'make-images.sh'), ['nginx'])
  const lab = await openLab({ environment })
  t.teardown(async () => await lab.close())
  await lab.k.configure('builds', { ...settingsOf(kind), ...settings })
  return lab
}

/** The containers of build engines of a project. */
export const builders = async (projectId: string, docker = engine) =>
  (await docker.listContainers({ all: true, filters: { label: [`project-id=${projectId}`] } })).filter(
    ({ Names }) => Names.some(name => name.startsWith('/busbar.builder.'))
  )

/** The lines of a deployment's log. */
export const linesOf = (deployment: { readonly build_logs: string }): string[] =>
  deployment.build_logs
    .split('\n')
    .filter(line => line !== '')
    .map(line => (JSON.parse(line) as { readonly msg: string }).msg)

/** How many processes of a container have this in their command line; or what a command prints in it. */
export async function execIn(
  id: string,
  text: string,
  command?: readonly string[],
  docker = engine
): Promise<string> {
  const counted =
    'n=0; for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2>/dev/null | grep -q "^$0" && n=$((n+1)); done; echo $n'
  const exec = await docker
    .getContainer(id)
    .exec({ Cmd: [...(command ?? ['sh', '-c', counted, text])], AttachStdout: true, Tty: true })
  const stream = await exec.start({ Tty: true })
  let output = ''
  for await (const chunk of stream) output += String(chunk)
  return output.trim()
}

export const has = (all: readonly string[], pattern: RegExp): boolean => all.some(line => pattern.test(line))
/** The end of a Dockerfile whose image serves on 8080. */
export const port = 'EXPOSE 8080\nCMD ["httpd", "-f", "-p", "8080"]\n'

/** A repository whose application answers `version` on 8080. */
export const sample = (version: string): GitFiles => ({
  'index.html': version,
  Dockerfile: `FROM busybox:lab\nWORKDIR /app\nCOPY . .\n${port}`
})
