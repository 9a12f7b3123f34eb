import { setTimeout as sleep } from 'node:timers/promises'
import { type Benchmark, mebibytes, millis, type Row, ratioAtMost } from './benchmark.js'
import {
  buildInEngine,
  engineOf,
  type MeasuredKind,
  measuredKinds,
  usedMib,
  usedMibByHand
} from './rig/build-engines.js'
import { ByHand } from './rig/by-hand.js'
import { Deployer, removeProject } from './rig/deployer.js'
import { expect } from './rig/expect.js'
import { removeFolder, temporaryFolder } from './rig/leftovers.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { Repository } from './rig/repository.js'
import { median, medianRatio } from './statistics.js'

const rounds = 5
const firstBuilds = 3
/** A daemon is done with its start by then. */
const settledMs = 5000

/** Goal 7 with build engines. It needs a Docker Engine with the images node:20 and docker:lab, or moby/buildkit:lab. */
export const engines: Benchmark = {
  name: 'engines',
  title: `Goal 7 in build engines: git push → first HTTP 200 of the new version, ${rounds} rounds; the reference builds by hand in the same engine`,
  async run() {
    const rows: Row[] = []
    for (const measured of await measuredKinds()) rows.push(...(await measureKind(measured)))
    return rows
  }
}

async function measureKind(measured: MeasuredKind): Promise<Row[]> {
  const directory = await temporaryFolder()
  const repository = await Repository.create(directory)
  const platform = await openPlatform({ admins: 1 })
  const hand = new ByHand(repository.url, directory, buildInEngine(measured, platform.projectId))
  try {
    await hand.open()
    expect(await platform.admin.put('/api/plugins/builds/config', measured.settings), 200)
    return await measure(measured, repository, hand, platform)
  } finally {
    await hand.close()
    await removeProject(platform)
    await platform.close()
    await repository.close()
    await removeFolder(directory)
  }
}

async function measure(
  measured: MeasuredKind,
  repository: Repository,
  hand: ByHand,
  platform: Platform
): Promise<Row[]> {
  const { kind } = measured
  const application = await Deployer.create(platform.admin, platform.projectId, repository.url)
  await application.finished(await application.start())
  const byPlatform = async (dependencies: number): Promise<number> => {
    const version = await repository.commit(dependencies)
    const startedAt = performance.now()
    await repository.push()
    const id = await application.deploy(version)
    const took = performance.now() - startedAt
    await application.finished(id)
    await application.clearedAway()
    return took
  }
  const byHand = async (dependencies: number): Promise<number> => {
    const version = await repository.commit(dependencies)
    const startedAt = performance.now()
    await repository.push()
    await hand.deploy(version)
    const took = performance.now() - startedAt
    await hand.removeContainers()
    return took
  }
  const ours = { first: [] as number[], cold: [] as number[], warm: [] as number[] }
  const reference = { cold: [] as number[], warm: [] as number[] }
  // Both build in one engine: each has layers of its own.
  for (let round = 1; round <= rounds; round++)
    for (const change of ['cold', 'warm'] as const)
      for (const side of round % 2 === 0 ? ['hand', 'platform'] : ['platform', 'hand'])
        if (side === 'hand') reference[change].push(await byHand(2 * round))
        else ours[change].push(await byPlatform(2 * round + 1))
  await sleep(settledMs)
  const idle = await usedMib(await engineOf(measured, platform.projectId))
  const idleByHand = await usedMibByHand(measured, async () => await sleep(settledMs))
  for (let round = 1; round <= firstBuilds; round++) {
    expect(await platform.admin.delete(`${application.path}/cache`), 200)
    ours.first.push(await byPlatform(2 * (rounds + round)))
  }
  return [
    {
      measure: `${kind}, cold: the layer of the dependencies is built anew`,
      ours: millis(median(ours.cold)),
      reference: millis(median(reference.cold)),
      ratio: medianRatio(ours.cold, reference.cold),
      goal: ratioAtMost(1.2)
    },
    {
      measure: `${kind}, warm: a change of the source`,
      ours: millis(median(ours.warm)),
      reference: millis(median(reference.warm)),
      ratio: medianRatio(ours.warm, reference.warm),
      goal: ratioAtMost(1.2)
    },
    {
      measure: `${kind}, first ever: the engine is made and given its base; the reference is a cold build in one that waits`,
      ours: millis(median(ours.first)),
      reference: millis(median(ours.cold)),
      ratio: median(ours.first) / median(ours.cold)
    },
    {
      measure: `${kind}, memory of an engine that waits; the reference is its daemon, just started by hand`,
      ours: mebibytes(idle),
      reference: mebibytes(idleByHand),
      ratio: idle / idleByHand
    }
  ]
}
