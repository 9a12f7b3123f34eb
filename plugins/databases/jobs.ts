import type { JobDeclarer, ScheduleDeclarer, SingletonDeclarer } from 'busbar/sdk'
import type { GivenUpVolume } from './backups/given-up-volumes.js'
import type { Databases } from './databases.js'

const provisionMs = 2 * 3_600_000
/** Longer than any copy takes that still is one. */
const upgradeMs = 48 * 3_600_000
/** Of a volume with millions of files. */
const removalMs = 3_600_000

export function jobs(job: JobDeclarer<Databases>) {
  job<{ readonly databaseId: string }>({
    name: 'provision',
    lane: 'long',
    // A process that is killed in the middle costs one; what fails by itself is not tried again but for an engine that is away.
    attempts: 25,
    timeoutMs: provisionMs,
    waitsForTenants: true,
    run: async ({ databaseId }, { attempt, signal }, { provisioner, queue }) => {
      await queue.once(databaseId, async () => await provisioner.run(databaseId, attempt, signal))
    }
  })
  job<{ readonly databaseId: string }>({
    name: 'upgrade',
    lane: 'long',
    attempts: 25,
    timeoutMs: upgradeMs,
    waitsForTenants: true,
    run: async ({ databaseId }, { signal }, { upgradeRunner, queue }) => {
      const runner = await upgradeRunner()
      await queue.once(databaseId, async () => await runner.run(databaseId, signal))
    }
  })
  job<GivenUpVolume>({
    name: 'remove-volume',
    lane: 'long',
    attempts: 25,
    timeoutMs: removalMs,
    waitsForTenants: true,
    run: async (volume, _context, { givenUp }) => {
      await givenUp.remove(volume)
    }
  })
}

export function singletons(singleton: SingletonDeclarer<Databases>) {
  singleton({
    name: 'status',
    run: async ({ signal }, { follower }) => {
      await follower.run(signal)
    }
  })
  singleton({
    name: 'unfinished',
    run: async ({ signal }, { databases }) => {
      await databases.takeUp(signal)
    }
  })
  singleton({
    name: 'left-work',
    run: async ({ signal }, { leftWork }) => {
      await leftWork.run(signal)
    }
  })
  singleton({
    name: 'ports',
    run: async ({ signal }, { ports }) => {
      await ports.run(signal)
    }
  })
}

export function schedules(schedule: ScheduleDeclarer<Databases>) {
  schedule({
    name: 'kept-volumes',
    cron: '23 * * * *',
    missed: 'run-once',
    run: async (_context, { upgrades }) => {
      await upgrades.removeKept()
    }
  })
}
