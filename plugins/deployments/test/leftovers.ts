import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import { type DeployLab, engine, type LabApplication } from './deploy-lab.js'

/**
 * What a platform has on its engine and its disk that nothing needs: containers beside the one that serves each
 * application, steps of builds, networks beside the project's, volumes, images of deployments that did not succeed,
 * work folders, and processes in them.
 */
async function leftovers(
  lab: DeployLab,
  applications: readonly LabApplication[],
  docker: Docker = engine
): Promise<string[]> {
  const { directory } = lab.k.state
  const instance = (await readFile(join(directory, 'data', 'runtime-docker', 'instance-id'), 'utf8')).trim()
  const work = join(directory, 'data', 'builds', 'work')
  const owned = { label: [`busbar-instance=${instance}`] }
  const built = { label: [`busbar-image-instance=${instance}`] }
  const [containers, steps, networks, { Volumes: volumes }, images] = await Promise.all([
    docker.listContainers({ all: true, filters: owned }),
    docker.listContainers({ all: true, filters: built }),
    docker.listNetworks({ filters: owned }),
    docker.listVolumes({ filters: owned }),
    docker.listImages({ filters: built })
  ])
  const kept = new Set<string>()
  const serving = new Set<string>()
  // A look costs requests, of which a session has 600 a minute.
  lab.k.resetRateLimits()
  const admin = await lab.k.as.session()
  for (const { path, slug } of applications) {
    const { body } = await admin.get(`${path}/deployments?limit=200`)
    // The image of the latest is the cache of the next build.
    for (const [index, row] of body.entries())
      if (row.status === 'success' || index === 0) kept.add(row.image_tag)
    if (body.some((row: any) => row.status === 'success')) serving.add(slug)
  }
  const names = containers.flatMap(({ Names }) => Names.map(name => name.slice(1)))
  return [
    ...names.filter(name => !serving.has(name)).map(name => `container ${name}`),
    ...[...serving].filter(name => !names.includes(name)).map(name => `no container ${name}`),
    ...steps
      .filter(({ Id }) => !containers.some(one => one.Id === Id))
      // What a killed platform was changing the packet filter with ends by itself, 30 s after it began.
      .filter(({ Labels }) => Labels['busbar-system'] !== 'host-tools')
      .map(({ Names }) => `build step ${Names.join()}`),
    ...networks
      .filter(({ Name }) => !Name.startsWith('busbar.builds.'))
      .slice(1)
      .map(({ Name }) => `network ${Name}`),
    ...(volumes ?? []).map(({ Name }) => `volume ${Name}`),
    ...images
      .flatMap(({ RepoTags }) => RepoTags ?? [])
      .filter(tag => tag !== '<none>:<none>' && !kept.has(tag))
      .map(tag => `image ${tag}`),
    ...(await readdir(work).catch(() => [])).map(name => `work folder ${name}`),
    ...(await processesIn(work)).map(pid => `process ${pid}`)
  ]
}

/** Waits until there are none; clean-up goes on beside everything else. */
export async function untilNothingIsLeft(
  lab: DeployLab,
  applications: readonly LabApplication[],
  docker: Docker = engine
): Promise<void> {
  let left: string[] = []
  const isClean = async (): Promise<boolean> => {
    left = await leftovers(lab, applications, docker)
    // Each look costs the engine five lists.
    if (left.length > 0) await sleep(200)
    return left.length === 0
  }
  await until(isClean, 'nothing is left', 90_000).catch((error: unknown) => {
    throw new Error(`left over: ${left.join(', ')}`, { cause: error })
  })
}

async function processesIn(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name))
  const places = await Promise.all(pids.map(async pid => await readlink(`/proc/${pid}/cwd`).catch(() => '')))
  return pids.filter((_, index) => places[index]?.startsWith(folder) === true)
}
