import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ImageInfo } from 'busbar/api/images'
import type { Test } from 'tap'
import { startLab } from '../../runtime-docker/test/lab.js'
import { DockerfileBuilder } from '../builders/dockerfile-builder.js'
import { type Engine, imageParts, withoutBuildEngines } from './fetched-lab.js'
import { folder, processes, recorder } from './kit.js'
import { policyOf } from './policy-of.js'

export interface Built {
  readonly image?: ImageInfo
  readonly error?: Error & { readonly code?: string }
  readonly log: string
  readonly tag: string
}

/** Builds Dockerfiles for applications on the real engine, without a repository. `wrap` stands between the builder and the engine; every host name is this machine, under `privateHosts`. */
export function startDockerfileLab(
  t: Test,
  wrap: (engine: Engine) => Partial<Engine> = () => ({}),
  privateHosts = 'deny'
) {
  const lab = startLab(t)
  const changes = wrap(lab.runtime)
  let builds = 0
  const engine = new Proxy<Engine>(lab.runtime, {
    get: (target, name: keyof Engine) => {
      if (name === 'build') builds++
      const value: unknown = changes[name] ?? target[name]
      return typeof value === 'function' ? value.bind(changes[name] === undefined ? target : changes) : value
    }
  })
  const builder = new DockerfileBuilder({
    ...imageParts(t, engine, privateHosts),
    ...withoutBuildEngines,
    runtime: lab.runtime,
    usualLimits: { memoryBytes: 512 * 2 ** 20, cpus: 1 },
    fetching: {
      hosts: {
        hostPolicy: policyOf(privateHosts),
        lookup: async () => [{ address: '127.0.0.1', family: 4 }]
      },
      maxBytes: 2 ** 20
    },
    archives: { exec: processes(t), limit: async () => 4 * 2 ** 20 }
  })
  return {
    lab,
    /** How often the engine was asked to build. */
    builds: () => builds,
    build: async (
      files: Readonly<Record<string, string | Buffer>>,
      applicationId: string = randomUUID(),
      variables: ReadonlyArray<{ key: string; value: string; isSecret: boolean }> = []
    ): Promise<Built> => {
      const directory = await tree(t, files)
      const context = recorder()
      const deploymentId = randomUUID()
      const tag = `busbar-dockerfile-lab-${deploymentId}:1`
      try {
        const image = await builder.build(
          {
            applicationId,
            deploymentId,
            projectId: lab.projectId,
            directory,
            dockerfilePath: '',
            tag,
            variables,
            builderImage: null,
            customBuildpacks: [],
            scratch: await folder(t),
            noCache: false
          },
          context
        )
        return { image, log: context.text(), tag }
      } catch (error) {
        return { error: error as Error, log: context.text(), tag }
      }
    }
  }
}

/** A folder with these files. */
export async function tree(t: Test, files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const directory = await folder(t)
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), content)
  }
  return directory
}
