import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { workerEntry } from '../threads/worker-entry.js'
import type { Call } from './stack.js'

/** What ran on the main thread after a beat. */
export interface Sample {
  /** The beat after which no other came. */
  readonly beat: number
  readonly calls: readonly Call[]
  /** In whose name the code ran, as `currentPlugin` says. */
  readonly plugin: string | undefined
}

export interface SamplerData {
  readonly beats: SharedArrayBuffer
  readonly port: MessagePort
  readonly sampleAfterMs: number
}

export interface StackSampler {
  /** Says that the event loop turns; `beat` is one more than the last. */
  beat(beat: number): void
  /** What ran after a beat, when it was seen. */
  sampleAfter(beat: number): Sample | undefined
  close(): Promise<void>
}

/** Far more than it needs; the default would be a share of the machine. */
const memoryLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 }

/**
 * A thread that watches the beats of this one and, when they stay away for `sampleAfterMs`, halts it with the
 * debugger for as long as it takes to read the stack. As long as the beats come it costs ten looks a second at
 * a shared number; nothing of the debugger is turned on.
 */
export function startStackSampler(sampleAfterMs: number, onError: (error: Error) => void): StackSampler {
  const beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const counter = new Int32Array(beats)
  const { port1: samples, port2: port } = new MessageChannel()
  const { entry, ...how } = workerEntry('stack-sampler-worker', import.meta.url)
  const worker = new Worker(entry, {
    ...how,
    workerData: { beats, port, sampleAfterMs },
    transferList: [port],
    env: {},
    resourceLimits: memoryLimits
  })
  worker.on('error', onError)
  worker.unref()
  samples.unref()
  return {
    beat(beat) {
      Atomics.store(counter, 0, beat)
    },
    sampleAfter(beat) {
      let found: Sample | undefined
      // Synchronous: what was seen is there before the main thread goes on.
      for (
        let next = receiveMessageOnPort(samples);
        next !== undefined;
        next = receiveMessageOnPort(samples)
      ) {
        const sample = next.message as Sample
        if (sample.beat === beat) found = sample
      }
      return found
    },
    async close() {
      samples.close()
      await worker.terminate()
    }
  }
}
