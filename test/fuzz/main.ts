/** `npm run fuzz -- --minutes 30 --seed 1 --pause 5`: prints its seed, and what it found made as small as can be. */
import { parseArgs } from 'node:util'
import { campaign } from './campaign.js'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    pause: { type: 'string', default: '0' }
  }
})
const end = performance.now() + Number(values.minutes) * 60_000
const roundMs = 120_000
let total = 0
let seed = Number(values.seed)

// In rounds: each looks at what is left behind, and begins with a new process.
for (; performance.now() < end; seed += 1) {
  console.log(`seed ${seed}`)
  const { conversations, statuses, finding, usage } = await campaign({
    seed,
    forMs: Math.min(roundMs, end - performance.now()),
    pauseMs: Number(values.pause)
  })
  total += conversations
  console.log(JSON.stringify({ conversations, total, statuses, usage }))
  if (finding === null) continue
  console.log(`FOUND with --seed ${seed}: ${finding.what}`)
  for (const { surface, pieces, end: how } of finding.input)
    console.log(`${surface}, ${how}: ${JSON.stringify(pieces)}`)
  process.exit(1)
}
console.log(`nothing was found in ${total} connections`)
process.exit(0)
