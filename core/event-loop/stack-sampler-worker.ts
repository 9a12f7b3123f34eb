import { readFileSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { workerData } from 'node:worker_threads'
import { currentPluginKey } from '../frames/frames.js'
import type { Sample, SamplerData } from './stack-sampler.js'

const { beats, port, sampleAfterMs } = workerData as SamplerData
const counter = new Int32Array(beats)

const lookEveryMs = 100
const lookAgainMs = 20
/** This thread was not running either: the machine is busy or was asleep, and no plugin caused it. */
const lateMs = 150
/** A thread that works has had so much of the processor meanwhile, even on a busy machine. */
const leastCpuMs = 10
/** What cannot be paused by then is native code. */
const timeoutMs = 60_000

let lastBeat = -1
let beatSeenAt = 0
let cpuThen: number | undefined
let lookedAt = performance.now()
let sampledBeat = -1

setInterval(() => {
  const now = performance.now()
  const wasLate = now - lookedAt > lookEveryMs + lateMs
  lookedAt = now
  const beat = Atomics.load(counter, 0)
  if (beat !== lastBeat || wasLate) {
    lastBeat = beat
    beatSeenAt = now
    cpuThen = undefined
  } else if (now - beatSeenAt >= sampleAfterMs && beat !== sampledBeat) {
    if (cpuThen === undefined) {
      cpuThen = mainThreadCpuMs()
      setTimeout(sampleIfBusy, lookAgainMs, beat)
    } else {
      sampleIfBusy(beat)
    }
  }
}, lookEveryMs)

/** A thread that waits for the processor or for a disk shows nothing, and to look would make it later still. */
function sampleIfBusy(beat: number): void {
  if (
    hasTurned(beat) ||
    beat === sampledBeat ||
    cpuThen === undefined ||
    mainThreadCpuMs() - cpuThen < leastCpuMs
  )
    return
  sampledBeat = beat
  takeSample(beat)
}

/** How much of the processor the main thread has had; ever more where that cannot be known. */
function mainThreadCpuMs(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6
  } catch {
    return performance.now()
  }
}

const hasTurned = (beat: number): boolean => Atomics.load(counter, 0) !== beat

/** Pauses the main thread where it is, reads the stack and resumes it. */
function takeSample(beat: number): void {
  const session = new Session()
  let isOpen = true
  const close = (): void => {
    if (!isOpen) return
    isOpen = false
    clearInterval(watch)
    // It resumes a paused thread as well.
    session.disconnect()
  }
  const startedAt = performance.now()
  // A loop that goes on again must not be paused later, in unrelated code.
  const watch = setInterval(() => {
    if (hasTurned(beat) || performance.now() - startedAt > timeoutMs) close()
  }, 20)
  const scripts = new Map<string, string>()
  session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => {
    scripts.set(scriptId, url)
  })
  session.on('Debugger.paused', ({ params: { callFrames } }) => {
    if (!isOpen || hasTurned(beat)) return close()
    session.post(
      'Runtime.evaluate',
      {
        expression: `globalThis[Symbol.for(${JSON.stringify(currentPluginKey)})]?.()`,
        silent: true,
        returnByValue: true
      },
      (error, answer) => {
        const value: unknown = error === null ? answer.result.value : undefined
        port.postMessage({
          beat,
          calls: callFrames.map(frame => callOf(frame, scripts)),
          plugin: typeof value === 'string' ? value : undefined
        } satisfies Sample)
        close()
      }
    )
  })
  session.connectToMainThread()
  session.post('Debugger.enable')
  session.post('Debugger.pause')
}

const callOf = (
  { functionName, location }: Debugger.CallFrame,
  scripts: ReadonlyMap<string, string>
): Sample['calls'][number] => ({
  name: functionName,
  url: scripts.get(location.scriptId) ?? '',
  line: location.lineNumber,
  column: location.columnNumber ?? 0
})
