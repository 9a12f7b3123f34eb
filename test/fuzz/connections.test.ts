/** What a raw connection may send; FUZZ_SEED repeats a run. `npm run fuzz` runs for longer. */
import { test } from 'tap'
import { campaign } from './campaign.js'

const seed = Number(process.env.FUZZ_SEED ?? 20_260_102)

test('no bytes of a connection end the process, hang, leave anything behind, or reach a container as two requests', async t => {
  const { conversations, statuses, finding, usage } = await campaign({ seed, forMs: 12_000 })
  t.comment(
    `FUZZ_SEED=${seed}: ${conversations} connections, ${JSON.stringify(statuses)}, ${JSON.stringify(usage)}`
  )
  t.same(finding, null)
  // Or all of it stopped at the door and proves nothing.
  for (const answer of [
    'address 101',
    'address 200',
    'address 400',
    'address 502',
    'platform 101',
    'platform 200',
    'platform 400',
    'platform 401'
  ])
    t.ok((statuses[answer] ?? 0) > 0, answer)
})
