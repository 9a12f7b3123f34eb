import { type Benchmark, count, millis, oursAtMost, type Row, ratioAtMost } from './benchmark.js'
import { ByHand } from './rig/by-hand.js'
import { Deployer, removeProject } from './rig/deployer.js'
import { removeFolder, temporaryFolder } from './rig/leftovers.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { Repository } from './rig/repository.js'
import { type VisitorReport, Visitors } from './rig/visitors.js'
import { median, medianRatio } from './statistics.js'

const rounds = 13
const switches = 5
const visitorsEach = 4
/** The first build with some dependencies, and the one after it. */
const changes = ['cold', 'warm'] as const
type Change = (typeof changes)[number]

/** Goal 7: how long a deploy takes, and what visitors notice of it. It needs a Docker Engine with the image node:20. */
export const deploys: Benchmark = {
  name: 'deploys',
  title: `Goal 7: git push → first HTTP 200 of the new version, behind an http health check, ${rounds} rounds; the reference is the same by the docker command`,
  async run() {
    const directory = await temporaryFolder()
    const repository = await Repository.create(directory)
    const platform = await openPlatform({ admins: 1 })
    const hand = new ByHand(repository.url, directory)
    try {
      await hand.open()
      return await measure(repository, hand, platform)
    } finally {
      await hand.close()
      await removeProject(platform)
      await platform.close()
      await repository.close()
      await removeFolder(directory)
    }
  }
}

async function measure(repository: Repository, hand: ByHand, platform: Platform): Promise<Row[]> {
  const application = await Deployer.create(platform.admin, platform.projectId, repository.url)
  await application.finished(await application.start())

  const ours: Record<Change, number[]> = { cold: [], warm: [] }
  const reference: Record<Change, number[]> = { cold: [], warm: [] }
  const byHand = async (change: Change, round: number): Promise<void> => {
    const version = await repository.commit(round)
    const startedAt = performance.now()
    await repository.push()
    await hand.deploy(version)
    reference[change].push(performance.now() - startedAt)
    await hand.removeContainers()
  }
  const byPlatform = async (change: Change, round: number): Promise<void> => {
    const version = await repository.commit(round)
    const startedAt = performance.now()
    await repository.push()
    const id = await application.deploy(version)
    ours[change].push(performance.now() - startedAt)
    await application.finished(id)
    await application.clearedAway()
  }
  for (let round = 1; round <= rounds; round++) {
    for (const change of changes) {
      // In turn, as the second finds the base image's layers in the page cache.
      for (const side of round % 2 === 0 ? [byHand, byPlatform] : [byPlatform, byHand])
        await side(change, round)
    }
  }
  const { requests, failedRequests, sockets, failedSockets, failures } = await deployUnderLoad(
    repository,
    application
  )
  for (const failure of failures.slice(0, 3)) console.error(`  ${failure}`)
  return [
    ...changes.map(change => ({
      measure: `${change}: ${change === 'cold' ? 'the layer of the dependencies is built anew' : 'a change of the source'}`,
      ours: millis(median(ours[change])),
      reference: millis(median(reference[change])),
      ratio: medianRatio(ours[change], reference[change]),
      goal: ratioAtMost(1.15)
    })),
    {
      measure: `failed requests of ${requests} during ${switches} deploys`,
      ours: count(failedRequests),
      goal: oursAtMost(0)
    },
    {
      measure: `WebSockets of ${sockets} that were refused or broke`,
      ours: count(failedSockets),
      goal: oursAtMost(0)
    }
  ]
}

async function deployUnderLoad(repository: Repository, application: Deployer): Promise<VisitorReport> {
  const visitors = new Visitors(`${application.url}/`, visitorsEach)
  for (let n = 0; n < switches; n++) {
    const version = await repository.commit(rounds)
    await repository.push()
    await application.finished(await application.deploy(version))
  }
  return await visitors.stop()
}
