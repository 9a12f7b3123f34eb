import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { startEmbedded } from '../embedded-postgres/index.js'
import { startEnvironment, startFlags } from '../lab/start-flags.js'
import {
  type Benchmark,
  type Goal,
  mebibytes,
  millis,
  oursAtMost,
  type Row,
  ratioAtMost
} from './benchmark.js'
import { removeFolder, temporaryFolder } from './rig/leftovers.js'
import { quietly, startPlatform } from './rig/platform.js'
import type { PlatformReady, Variant } from './rig/platform-server.js'
import { cpuMicros, memoryOf } from './rig/process-usage.js'
import { median, medianRatio } from './statistics.js'

const rounds = 7
const idleMs = 10_000
/** As `npm start` runs it. */
const program = [...startFlags, fileURLToPath(new URL('../core/main.js', import.meta.url))]
const bareProgram = fileURLToPath(new URL('./rig/bare-server.js', import.meta.url))

/** Goal 6: how long the platform takes to listen, and what it keeps in memory. */
export const start: Benchmark = {
  name: 'start',
  title: `Goal 6: start and memory, PostgreSQL is running, ${rounds} rounds`,
  async run() {
    const directory = await temporaryFolder()
    const embedded = await startEmbedded({
      directory: join(directory, 'database'),
      log: pino({ level: 'silent' })
    })
    try {
      return await measure(embedded.url, directory)
    } finally {
      await embedded.stop()
      await removeFolder(directory)
    }
  }
}

async function measure(databaseUrl: string, directory: string): Promise<Row[]> {
  const environment = { DATABASE_URL: databaseUrl, BUSBAR_DIR: join(directory, 'data') }
  const inKernel = async (variant: Variant): Promise<PlatformReady> => {
    const child = await startPlatform(variant, join(directory, 'platform.log'), environment)
    await child.stop()
    return child.ready
  }
  // The first one migrates.
  const { routes } = await inKernel('folders')
  const list = JSON.stringify(routes)

  const starts = {
    schemas: [] as Start[],
    noSchemas: [] as Start[],
    kernel: [] as Start[],
    bareKernel: [] as Start[],
    process: [] as Start[],
    bareProcess: [] as Start[]
  }
  for (let round = 0; round < rounds; round++) {
    starts.schemas.push(kernelStart(await inKernel('loaded')))
    starts.noSchemas.push(kernelStart(await inKernel('noSchemas')))
    starts.kernel.push(kernelStart(await inKernel('folders')))
    const ours = await startProgram(program, environment)
    starts.process.push(ours.start)
    await ours.stop()
    const bare = await startProgram([bareProgram, databaseUrl, list], {})
    starts.bareProcess.push(bare.start)
    starts.bareKernel.push(JSON.parse(/serves after (.*)/.exec(bare.line)?.[1] ?? '{}') as Start)
    await bare.stop()
  }
  const resident: number[] = []
  const proportional: number[] = []
  for (let round = 0; round < rounds; round++) {
    const platform = await startProgram(program, environment)
    await sleep(idleMs)
    const { residentMib, proportionalMib } = memoryOf(platform.process.pid ?? 0)
    resident.push(residentMib)
    proportional.push(proportionalMib)
    await platform.stop()
  }

  const row = (
    measure: string,
    key: keyof Start,
    ours: readonly Start[],
    reference: readonly Start[]
  ): Row => {
    const [left, right] = [ours, reference].map(all => all.map(one => one[key]))
    return {
      measure,
      ours: millis(median(left ?? [])),
      reference: millis(median(right ?? [])),
      ratio: medianRatio(left ?? [], right ?? [])
    }
  }
  const both = (measure: string, ours: readonly Start[], reference: readonly Start[], goal?: Goal): Row[] => [
    { ...row(measure, 'ms', ours, reference), goal },
    row(`${measure}, CPU`, 'cpuMs', ours, reference)
  ]
  return [
    ...both(
      `modules loaded → listening; without the schemas of its ${routes.length} routes`,
      starts.schemas,
      starts.noSchemas,
      ratioAtMost(1.3)
    ),
    ...both(
      `kernel loaded → listening; a bare fastify with ${routes.length} routes and knex`,
      starts.kernel,
      starts.bareKernel
    ),
    ...both('process started → listening; the same', starts.process, starts.bareProcess, ratioAtMost(2)),
    {
      measure: `resident memory after ${idleMs / 1000} s, every plugin on`,
      ours: mebibytes(median(resident)),
      goal: oursAtMost(120)
    },
    { measure: 'of that, its share when others use the same', ours: mebibytes(median(proportional)) }
  ]
}

/** How long something took, and the CPU time of that, which says more on a machine that has other things to do. */
interface Start {
  readonly ms: number
  readonly cpuMs: number
}

const kernelStart = ({ startMs, startCpuMs }: PlatformReady): Start => ({ ms: startMs, cpuMs: startCpuMs })

interface Program {
  readonly process: ChildProcess
  readonly start: Start
  readonly line: string
  stop(): Promise<void>
}

/** Starts a program and waits for the line that says that it serves. */
async function startProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>>
): Promise<Program> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...startEnvironment, ...environment, ...quietly },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  for await (const line of createInterface({ input: child.stdout })) {
    if (!/\bserves\b/.test(line)) continue
    const start = { ms: performance.now() - startedAt, cpuMs: cpuMicros(child.pid ?? 0) / 1000 }
    child.stdout.resume()
    const stop = async (): Promise<void> => {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    return { process: child, start, line, stop }
  }
  throw new Error(`${args[0] ?? ''} ended before it served`)
}
