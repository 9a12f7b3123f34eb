import { randomBytes, randomUUID } from 'node:crypto'
import type { ContainerSpec } from 'busbar/api/containers'
import { settingsFrom } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import pino from 'pino'
import tap, { type Test, test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { createExec } from '../../../core/exec/exec.js'
import { createRedactor } from '../../../core/log/redactor.js'
import { keyringOf } from '../../../core/secrets/keyring.js'
import { secretsFor } from '../../../core/secrets/secrets.js'
import { requireEngine } from '../../../lab/engine.js'
import { removeInstallationFromEngine } from '../../../lab/installation.js'
import { DockerRuntime } from '../docker-runtime.js'
import { localTools } from '../host/local-tools.js'
import { settings } from '../settings.js'

export const clock = systemClock()

export const log = pino({ level: 'silent' })

/** A test that needs an engine. */
export function engineTest(title: string, run: (t: Test) => Promise<void>): void {
  void test(title, async t => {
    if (await requireEngine(t)) await run(t)
  })
}

export interface Lab {
  readonly runtime: DockerRuntime
  readonly docker: Docker
  readonly instanceId: string
  readonly projectId: string
  /** A spec of a container that lives until it is told to end. */
  spec(name: string, network: string, changes?: Partial<ContainerSpec>): ContainerSpec
  /** The same installation for another project. */
  otherProject(): Lab
}

/** Of one installation. */
export const signatures = secretsFor(
  keyringOf(new Map([['test', randomBytes(32)]]), 'test'),
  createRedactor(),
  'runtime-docker'
)

interface LabOptions {
  readonly environment?: Readonly<Record<string, string>>
  /** The same as `environment` names. */
  readonly docker?: Docker
  /** For a second platform that goes on where another one ended. */
  readonly instanceId?: string
  /** The platform is root on the engine's machine. */
  readonly isLocal?: boolean
}

/**
 * One installation for the tests of a file, each of which gets a project of its own. What an installation keeps on the
 * machine is put up and taken away by six containers, one after another: that is most of what a small test takes.
 */
export function sharedLab(options?: LabOptions): () => Lab {
  let first: Lab | undefined
  return () => {
    first ??= startLab(tap, options)
    return first.otherProject()
  }
}

/** A runtime of an instance of its own on the real engine; everything it made is removed after the test. */
export function startLab(
  t: Pick<Test, 'teardown'>,
  { environment = {}, docker = new Docker(), instanceId = randomUUID(), isLocal = false }: LabOptions = {}
): Lab {
  const runtime = new DockerRuntime({
    instanceId,
    signatures,
    clock,
    log,
    settings: settingsFrom(settings, { ...process.env, ...environment }),
    ...(isLocal ? { localTools: localTools(createExec({ log })) } : {})
  })
  t.teardown(async () => {
    await runtime.disk.close()
    await runtime.limits.stop()
    await removeInstallationFromEngine(instanceId, docker)
  })
  const ofProject = (projectId: string): Lab => ({
    runtime,
    docker,
    instanceId,
    projectId,
    spec: (name, network, changes = {}) => ({
      name: `${name}-${projectId.slice(0, 8)}`,
      image: 'busybox:lab',
      owner: { projectId },
      network,
      env: {},
      // sh as the child of init ends at once on SIGTERM only when it is not waiting for a foreground child.
      command: ['sh', '-c', 'trap "exit 0" TERM; while true; do sleep 0.1; done'],
      cpuLimit: 0,
      memoryLimit: 0,
      caps: 'minimal',
      readonlyRootfs: true,
      ...changes
    }),
    otherProject: () => ofProject(randomUUID())
  })
  return ofProject(randomUUID())
}
