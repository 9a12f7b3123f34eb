import { test } from 'tap'
import type { RolloutStepName } from '../api.js'
import type { Rollout } from '../rollout/rollout.js'
import { type Boundaries, type RolloutStep, StepSequence } from '../rollout/step-sequence.js'

const rollout = {} as Rollout

/** What happens, in order; a note ends when `written` is called. */
function observed() {
  const seen: string[] = []
  let written = (): void => {}
  let failNote: Error | undefined
  const boundaries: Boundaries = {
    before: async step => void seen.push(`before ${step}`),
    note: async step => {
      seen.push(`note ${step}`)
      await new Promise<void>(resolve => {
        written = resolve
      })
      seen.push(`noted ${step}`)
      if (failNote !== undefined) throw failNote
    },
    after: async step => void seen.push(`after ${step}`),
    ends: async (_, __, work) => await work
  }
  const step = (name: RolloutStepName, more: Partial<RolloutStep<Rollout, object>> = {}) => ({
    name,
    run: async () => {
      seen.push(`run ${name}`)
      return {}
    },
    ...more
  })
  const settle = async (): Promise<void> => await new Promise(resolve => setImmediate(resolve))
  return {
    seen,
    boundaries,
    step,
    settle,
    write: async (error?: Error) => {
      failNote = error
      written()
      await settle()
    }
  }
}

test('a step waits until it is noted that it has begun', async t => {
  const { seen, boundaries, step, settle, write } = observed()
  const running = StepSequence.from<Rollout>().with(step('record')).run(rollout, boundaries)
  await settle()
  t.same(seen, ['before record', 'note record'])
  await write()
  await running
  t.same(seen.slice(2), ['noted record', 'run record', 'after record'])
})

test('an early step runs beside the note, and the next one begins when both are done', async t => {
  const { seen, boundaries, step, settle, write } = observed()
  const running = StepSequence.from<Rollout>()
    .with(step('load', { isEarly: true }))
    .with(step('record'))
    .run(rollout, boundaries)
  await settle()
  t.same(seen, ['before load', 'note load', 'run load'])
  await write()
  t.same(seen.slice(3), ['noted load', 'after load', 'before record', 'note record'])
  await write()
  await running
})

test('an early step waits for the note before what it cannot undo', async t => {
  const { seen, boundaries, step, settle, write } = observed()
  const run = async (_: Rollout, noted: Promise<void>): Promise<object> => {
    seen.push('look')
    await noted
    seen.push('act')
    return {}
  }
  const running = StepSequence.from<Rollout>()
    .with(step('switch', { isEarly: true, run }))
    .run(rollout, boundaries)
  await settle()
  t.same(seen, ['before switch', 'note switch', 'look'])
  await write()
  await running
  t.same(seen.slice(3), ['noted switch', 'act', 'after switch'])
})

test('a note that is refused ends the sequence when the step has ended, and counts before its failure', async t => {
  const { seen, boundaries, step, settle, write } = observed()
  let end = (): void => {}
  const run = async (): Promise<object> => {
    await new Promise<void>(resolve => {
      end = resolve
    })
    seen.push('ended')
    throw new Error('the step failed')
  }
  const running = StepSequence.from<Rollout>()
    .with(step('create', { isEarly: true, run }))
    .run(rollout, boundaries)
  const failed = t.rejects(running, /cancelled/)
  await settle()
  await write(new Error('cancelled'))
  seen.push('waiting')
  end()
  await failed
  t.same(seen.slice(2), ['noted create', 'waiting', 'ended'])
})
