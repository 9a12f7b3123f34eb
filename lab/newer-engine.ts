import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import type { Test } from 'tap'
import { requireEngine } from './engine.js'

const image = 'docker:26-lab'
const readyMs = 60_000

/** A Docker Engine that is newer than that of the machine, in a container of it and without a network; these images are copied to it. */
export async function startNewerEngine(
  t: Test,
  images: readonly string[]
): Promise<{ readonly docker: Docker; readonly environment: Readonly<Record<string, string>> } | undefined> {
  if (!(await requireEngine(t))) return undefined
  await promisify(execFile)(join(import.meta.dirname, 'make-images.sh'), ['docker-26'])
  const outer = new Docker()
  const root = await mkdtemp(join(tmpdir(), 'busbar-newer-'))
  const socket = join(root, 'docker.sock')
  const container = await outer.createContainer({
    name: `newer-engine-${randomBytes(4).toString('hex')}`,
    Image: image,
    Cmd: [
      'dockerd',
      '--host',
      `unix://${socket}`,
      '--bridge',
      'none',
      '--iptables=false',
      '--ip6tables=false'
    ],
    HostConfig: {
      NetworkMode: 'none',
      Binds: [`${root}:${root}`, '/sys/fs/cgroup:/sys/fs/cgroup'],
      CapAdd: ['SYS_ADMIN', 'NET_ADMIN'],
      SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined'],
      MaskedPaths: [],
      ReadonlyPaths: [],
      OomScoreAdj: 0
    },
    // Of its own, as an engine cannot keep layers on an overlay.
    Volumes: { '/var/lib/docker': {} }
  })
  t.teardown(async () => {
    await container.remove({ force: true, v: true })
    await rm(root, { recursive: true, force: true })
  })
  await container.start()
  const docker = new Docker({ socketPath: socket })
  await until(async () => await docker.version().catch(() => undefined), 'the newer engine answers', readyMs)
  for (const name of images) {
    const load = await docker.loadImage(await outer.getImage(name).get())
    for await (const _ of load);
  }
  return { docker, environment: { DOCKER_HOST: `unix://${socket}` } }
}
