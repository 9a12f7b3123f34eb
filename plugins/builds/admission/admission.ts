import { type ContainerRuntime, machineFactsMs } from 'busbar/api/containers'
import type { Clock, ConfigWarning, Instance, Problem } from 'busbar/sdk'
import type { AdmissionVerdict, BuildAdmission, BuildQueue, ImageRequest } from '../api.js'
import type { RoomMaker } from '../disk/room-maker.js'
import { type BuildSettings, buildSlots } from '../settings.js'
import { type Disk, type Machine, shortDisk } from './admission-decision.js'
import { type MachineSources, readDisks, readMachine, readSwap } from './admission-readings.js'
import { decideQueue } from './admission-turns.js'
import { machineWarnings } from './machine-warnings.js'

interface AdmissionParts {
  readonly runtime: Pick<ContainerRuntime, 'info'>
  readonly instance: Pick<Instance, 'directory'>
  readonly clock: Clock
  readonly settings: BuildSettings
  readonly room: Pick<RoomMaker, 'make' | 'isDue' | 'isUnderWay'>
}

/** How long a deploy waits for room on a disk, where some may come. */
const longestWaitMs = 5 * 60_000
const lookMs = 1000
/** Longer than the queue takes to ask again: what a round has not removed by then did not go. */
const roomEveryMs = 10_000
/** An engine that does not answer must not hold up the queue. */
const engineLimitMs = 2000

/**
 * See `BuildAdmission`. It keeps nothing: who waits and who runs is the queue's knowledge, which is in
 * PostgreSQL and holds for all processes of the installation; what is free is read anew each time. Processes
 * of one installation build on the same engine, so the queue is one; another installation beside it is seen
 * in what is free.
 */
export class Admission implements BuildAdmission {
  /** Undefined while it is away. */
  #engine: MachineSources['engine']

  constructor(private readonly parts: AdmissionParts) {}

  async decide(queue: BuildQueue): Promise<ReadonlyMap<string, AdmissionVerdict>> {
    const { settings, clock, room } = this.parts
    const machine = await this.#readMachine()
    const isShort = queue.waiting.length > 0 && shortDisk(machine, settings) !== undefined
    // The queue is locked meanwhile, for all deployments: it asks again in a moment.
    if (isShort && room.isDue(roomEveryMs)) void room.make(0)
    return decideQueue(queue, {
      machine,
      isMakingRoom: isShort && room.isUnderWay,
      settings,
      now: clock.now()
    })
  }

  /**
   * Refuses while a disk is short: a pull needs no turn, but room. Waits while that is made, and while `mayComeBack` says that
   * others may give back what they have taken.
   */
  async requireDisk(signal: AbortSignal, mayComeBack: () => Promise<boolean>): Promise<void> {
    const { clock } = this.parts
    const until = clock.elapsed() + longestWaitMs
    for (;;) {
      const { short, isMakingRoom } = await this.#shortDisk()
      if (short === undefined) return
      const isWorthWaiting = isMakingRoom || (await mayComeBack())
      if (!isWorthWaiting || clock.elapsed() >= until) throw short
      await clock.sleep(lookMs, signal)
    }
  }

  /** What a build gets without a limit of its own. */
  async usualLimits(): Promise<ImageRequest['limits']> {
    return buildSlots(this.parts.settings, await this.#readMachine()).each
  }

  /** What is wrong with the machine that is built on. */
  async warnings(): Promise<ConfigWarning[]> {
    const [machine, swap] = await Promise.all([this.#readMachine(), readSwap()])
    return machineWarnings(machine, swap, this.parts.settings.disk_floor_mib * 2 ** 20)
  }

  /** What is free on each disk that builds write to. */
  async disks(): Promise<readonly Disk[]> {
    // Where the engine keeps its data does not change; asking it again could take longer than a disk takes to fill.
    const engine = this.#engine ?? (await this.#engineFacts())
    return await readDisks({ directory: await this.parts.instance.directory(), engine })
  }

  /** Where a disk is short, room is made before a build is refused. */
  async #shortDisk(): Promise<{ readonly short: Problem | undefined; readonly isMakingRoom: boolean }> {
    const { settings, room } = this.parts
    const before = shortDisk({ disks: await this.disks() }, settings)
    if (before === undefined) return { short: undefined, isMakingRoom: false }
    const isMade = await room.make()
    return { short: shortDisk({ disks: await this.disks() }, settings), isMakingRoom: !isMade }
  }

  async #readMachine(): Promise<Machine> {
    return await readMachine({
      directory: await this.parts.instance.directory(),
      engine: await this.#engineFacts()
    })
  }

  async #engineFacts(): Promise<MachineSources['engine']> {
    const { runtime, clock } = this.parts
    const done = new AbortController()
    const facts = await Promise.race([
      runtime.info({ maxAgeMs: machineFactsMs }).catch(() => undefined),
      clock
        .sleep(engineLimitMs, done.signal)
        .catch(() => {})
        .then(() => undefined)
    ])
    done.abort()
    this.#engine = facts
    return facts
  }
}
