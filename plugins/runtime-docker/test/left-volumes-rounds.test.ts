import { testClock } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { test } from 'tap'
import { LeftVolumes } from '../removal/left-volumes.js'

/** Rounds are counted; nothing is left. */
function lab() {
  const clock = testClock()
  let rounds = 0
  const volumes = new LeftVolumes({
    holders: {
      list: async () => [],
      count: async () => 0,
      remove: async () => {},
      removeLeftImages: async () => {
        rounds++
      }
    },
    files: { removeLeft: async () => {} },
    emptier: { empty: async () => 'unfinished' },
    removeVolume: async () => {},
    clock,
    log: pino({ level: 'silent' })
  })
  return { clock, volumes, rounds: () => rounds }
}

test('volumes are looked for once a minute, and at once when a container has left some', async t => {
  const { clock, volumes, rounds } = lab()
  const stop = new AbortController()
  const ended = volumes.keepRemoving(stop.signal)
  await clock.advance(59_999)
  t.equal(rounds(), 1)
  await clock.advance(1)
  t.equal(rounds(), 2)
  await volumes.note('project')
  await clock.advance(0)
  t.equal(rounds(), 3)
  stop.abort()
  await ended
  t.equal(rounds(), 3, 'and no more when the platform stops, which waits for no minute')
})
