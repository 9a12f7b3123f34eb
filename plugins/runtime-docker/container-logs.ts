import type { LogLine, LogOptions, OutputLine } from 'busbar/api/containers'
import type { EngineClient } from './engine-client.js'
import { outputFrames } from './output-frames.js'
import { asReadable, OutputLines } from './output-lines.js'

/** What stands before each piece where timestamps are asked for: `2026-01-02T03:04:05.678901234Z `. */
const timestamp = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z) /

/** See `ContainerRuntime.logs`. */
export async function* containerLogs(
  engine: EngineClient,
  { containerId, hasTerminal }: { readonly containerId: string; readonly hasTerminal: boolean },
  { tail, since, follow = false, signal }: LogOptions
): AsyncGenerator<LogLine> {
  if (signal.aborted) return
  // Of dockerode: `follow: true` asks for a stream instead of all at once, and `_query` is what the engine is sent.
  const options: { follow: true; abortSignal: AbortSignal; readonly _query: object } = {
    follow: true,
    abortSignal: signal,
    _query: {
      stdout: true,
      stderr: true,
      timestamps: true,
      follow,
      ...(tail === undefined ? {} : { tail }),
      ...(since === undefined ? {} : { since: (since.getTime() / 1000).toFixed(3) })
    }
  }
  const task = 'read the output of a container'
  try {
    const output = await engine.call(
      task,
      async docker => asReadable(await docker.getContainer(containerId).logs(options)),
      { patient: true }
    )
    const found: LogLine[] = []
    let at = new Date(0)
    const linesOf = (stream: OutputLine['stream']) =>
      new OutputLines(text => {
        found.push({ stream, text, at })
      })
    const lines = { stdout: linesOf('stdout'), stderr: linesOf('stderr') }
    for await (const { stream, text } of engine.reading(task, outputFrames(output, hasTerminal))) {
      const [prefix = '', time] = timestamp.exec(text) ?? []
      if (time !== undefined) at = new Date(time)
      await lines[stream].writeInTurns(text.slice(prefix.length))
      yield* found.splice(0)
    }
    for (const stream of Object.values(lines)) stream.end()
    yield* found
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
