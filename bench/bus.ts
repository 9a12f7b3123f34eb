import {
  type Benchmark,
  type Goal,
  kibibytes,
  micros,
  millis,
  oursAtMost,
  type Row,
  ratioAtMost
} from './benchmark.js'
import type { BusCommands, BusReady, Delivery, Mode } from './rig/bus-server.js'
import { Child } from './rig/child.js'
import { median, medianRatio } from './statistics.js'

const modes: readonly Mode[] = ['naive', 'bare', 'hub', 'joined']
const rounds = 7
/** By the number of clients: what the hub may cost more than bytes written to raw sockets. */
const sizes: ReadonlyArray<{ readonly clients: number; readonly ofBare: Goal }> = [
  { clients: 1000, ofBare: ratioAtMost(1 / 0.65) },
  { clients: 5000, ofBare: ratioAtMost(1 / 0.78) }
]

/** Goal 3: one 200-byte message to many WebSockets. */
export const bus: Benchmark = {
  name: 'bus',
  title: `Goal 3: fan-out of 200 bytes, CPU per delivered message, ${rounds} rounds`,
  async run() {
    const rows: Row[] = []
    for (const { clients, ofBare } of sizes) {
      const server = await Child.start<BusReady, BusCommands>(
        new URL('./rig/bus-server.js', import.meta.url),
        { args: [String(clients)], execArgv: ['--expose-gc'] }
      )
      try {
        const runs: Record<Mode, Delivery[]> = { naive: [], bare: [], hub: [], joined: [] }
        for (let round = 0; round < rounds; round++) {
          for (const mode of modes) runs[mode].push(await server.ask('measure', mode))
        }
        const cost = (mode: Mode): number[] => runs[mode].map(run => run.micros)
        const compare = (measure: string, mode: Mode, reference: Mode, goal?: Goal): Row => ({
          measure,
          ours: micros(median(cost(mode))),
          reference: micros(median(cost(reference))),
          ratio: medianRatio(cost(mode), cost(reference)),
          goal
        })
        rows.push(
          compare(`${clients} clients; bytes written to raw sockets`, 'hub', 'bare', ofBare),
          compare(`${clients} clients; ws.send(JSON.stringify()) for each`, 'hub', 'naive'),
          compare(
            `${clients} clients, 8 events of one tick; the same one by one`,
            'joined',
            'naive',
            ratioAtMost(1 / 8)
          ),
          {
            measure: `${clients} clients, p99 of a turn of the loop, CPU`,
            ours: millis(median([...runs.hub, ...runs.joined].map(run => run.longTurnMs))),
            goal: oursAtMost(10)
          },
          {
            measure: `${clients} clients, memory of an idle connection`,
            ours: kibibytes(server.ready.bytesPerClient / 1024),
            goal: oursAtMost(12)
          }
        )
      } finally {
        await server.stop()
      }
    }
    return rows
  }
}
