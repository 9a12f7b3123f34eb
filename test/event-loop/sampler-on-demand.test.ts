import { test } from 'tap'
import { SamplerOnDemand } from '../../core/event-loop/sampler-on-demand.js'

const hourMs = 3_600_000

/** Samplers that say what became of them. */
function fakeSamplers(): {
  running: number
  readonly beats: number[]
  fail: (error: Error) => void
  start: (afterMs: number, onError: (error: Error) => void) => never
} {
  const fake = {
    running: 0,
    beats: [] as number[],
    fail: (_: Error): void => {},
    start: (_: number, onError: (error: Error) => void): never => {
      fake.running++
      fake.fail = onError
      return {
        beat: (beat: number) => fake.beats.push(beat),
        sampleAfter: (beat: number) => ({ beat, calls: [], plugin: 'probe' }),
        close: async () => {
          fake.running--
        }
      } as never
    }
  }
  return fake
}

test('the thread that reads stacks is there from the first stall until an hour has passed without one', async t => {
  const fake = fakeSamplers()
  const sampler = new SamplerOnDemand(error => t.fail(error.message), fake.start)
  sampler.beat(1, 0)
  t.equal(fake.running, 0, 'a platform that has not stood still has none')
  t.equal(sampler.sampleAfter(1), undefined)

  sampler.stalled(1_000)
  sampler.stalled(2_000)
  t.equal(fake.running, 1, 'one for all stalls')
  sampler.beat(2, 2_000 + hourMs - 1)
  t.same(fake.beats, [2], 'it is told that the loop turns')
  t.match(sampler.sampleAfter(2), { beat: 2, plugin: 'probe' })

  sampler.beat(3, 2_000 + hourMs)
  t.equal(fake.running, 0, 'an hour after the last one it goes')
  t.equal(sampler.sampleAfter(3), undefined)
  sampler.stalled(3_000 + hourMs)
  t.equal(fake.running, 1, 'and it comes again')
  await sampler.close()
  t.equal(fake.running, 0)
})

test('a thread that has failed is not started again', async t => {
  const fake = fakeSamplers()
  const errors: Error[] = []
  const sampler = new SamplerOnDemand(error => errors.push(error), fake.start)
  sampler.stalled(0)
  fake.fail(new Error('no memory'))
  await sampler.close()
  sampler.stalled(1)
  t.equal(fake.running, 0)
  t.match(errors, [{ message: 'no memory' }], 'it is told once')
})
