import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { type DeployLab, engine, openLab } from '../../deployments/test/deploy-lab.js'

/** A build engine that can be had on this machine. */
export interface EngineKind {
  readonly build_engine: 'buildkit' | 'dockerd'
  readonly image: string
  /** What `lab/make-images.sh` calls it. */
  readonly made: string
  /** It knows what BuildKit learnt later: heredocs, `COPY --link`. */
  readonly isNew: boolean
}

export const engineKinds: Readonly<Record<string, EngineKind>> = {
  'the Docker Engine of this machine': {
    build_engine: 'dockerd',
    image: 'docker:lab',
    made: 'docker',
    isNew: false
  },
  'a newer Docker Engine': {
    build_engine: 'dockerd',
    image: 'docker:26-lab',
    made: 'docker-26',
    isNew: true
  },
  BuildKit: { build_engine: 'buildkit', image: 'moby/buildkit:lab', made: 'buildkit', isNew: true }
}

const makeImages = join(import.meta.dirname, '../../../lab/make-images.sh')

/** A platform that builds with such an engine. */
export async function openEngineLab(
  t: Test,
  kind: EngineKind,
  settings: Readonly<Record<string, unknown>> = {}
): Promise<DeployLab> {
  await promisify(execFile)(makeImages, [kind.made])
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const { build_engine, image } = kind
  await lab.k.configure('builds', {
    build_engine,
    [build_engine === 'buildkit' ? 'buildkit_image' : 'dockerd_image']: image,
    memory_mib: 512,
    ...settings
  })
  return lab
}

/** The containers of build engines of a project. */
export const builders = async (projectId: string) =>
  (await engine.listContainers({ all: true, filters: { label: [`project-id=${projectId}`] } })).filter(
    ({ Names }) => Names.some(name => name.startsWith('/busbar.builder.'))
  )

/** The lines of a deployment's log. */
export const linesOf = (deployment: { readonly build_logs: string }): string[] =>
  deployment.build_logs
    .split('\n')
    .filter(line => line !== '')
    .map(line => (JSON.parse(line) as { readonly msg: string }).msg)
