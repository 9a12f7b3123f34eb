import type { Duplex } from 'node:stream'
import { bounded } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from '../engine-client.js'
import { problems } from '../problems.js'

/** A program beside the container's own, with both its ends. */
export interface HijackedExec {
  readonly id: string
  /** Paused, so that nothing is lost before somebody reads. */
  readonly stream: Duplex
}

interface HijackOptions {
  readonly containerId: string
  readonly command: readonly string[]
  readonly user?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly hasTerminal: boolean
  readonly signal: AbortSignal
}

/** How long an engine has to start a program whose connection it has taken. */
const startMs = 10_000
const firstPauseMs = 10
const lastPauseMs = 200

/**
 * Starts a program and takes over its connection. An engine hands that over before it has started the program, so what
 * became of it is asked for: 502 E_CONTAINER_PROGRAM where there is none of that name.
 */
export async function startHijacked(
  engine: EngineClient,
  { containerId, command, user, env = {}, hasTerminal, signal }: HijackOptions
): Promise<HijackedExec> {
  signal.throwIfAborted()
  const program = command[0] ?? ''
  const task = `run ${program} in a container`
  const { id } = await engine.call(
    task,
    async docker =>
      await docker.getContainer(containerId).exec({
        Cmd: [...command],
        Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
        Tty: hasTerminal,
        ...(user !== undefined && { User: user }),
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true
      }),
    {
      explain: ({ statusCode }) =>
        statusCode === 404 ? problems.containerMissing({ container: containerId }) : undefined
    }
  )
  const stream = await engine.call(
    task,
    async docker => await docker.getExec(id).start({ hijack: true, stdin: true, Tty: hasTerminal }),
    {
      patient: true,
      explain: ({ statusCode, words }) =>
        statusCode !== undefined && isNoProgram(words)
          ? problems.programMissing({ program, reason: words })
          : undefined
    }
  )
  // A connection that breaks ends; whoever reads it sees no more than that.
  stream.on('error', () => {})
  try {
    await untilStarted(engine, { id, stream, program, signal })
    return { id, stream }
  } catch (error) {
    stream.destroy()
    throw error
  }
}

async function untilStarted(
  engine: EngineClient,
  {
    id,
    stream,
    program,
    signal
  }: { readonly id: string; readonly stream: Duplex; readonly program: string; readonly signal: AbortSignal }
): Promise<void> {
  const over = new AbortController()
  const ask = async (): Promise<void> => {
    for (let pauseMs = firstPauseMs; !over.signal.aborted; pauseMs = Math.min(pauseMs * 2, lastPauseMs)) {
      const seen = await inspectExec(engine, id)
      if (seen.Running && seen.Pid > 0) return
      // One that has ended by now was started; what could not be has an exit code of its own, and its reason as output.
      const { ExitCode: code } = seen
      if (!seen.Running && typeof code === 'number') {
        if (code !== 126 && code !== 127) return
        throw problems.programMissing({ program, reason: await shortText(stream) })
      }
      await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
  }
  try {
    await bounded(ask, { ms: startMs, signal, what: `the start of ${program} in a container` })
  } finally {
    over.abort()
  }
}

export const inspectExec = async (engine: EngineClient, id: string): Promise<Docker.ExecInspectInfo> =>
  await engine.call('look at a program in a container', async docker => await docker.getExec(id).inspect())

const longestReason = 500

/** What an engine says in the place of the output of a program that it could not start. */
async function shortText(stream: Duplex): Promise<string> {
  let text = ''
  const read = async (): Promise<void> => {
    for await (const piece of stream) {
      text += String(piece)
      if (text.length > longestReason) return
    }
  }
  await bounded(read, { ms: 1000, what: 'the reason' }).catch(() => {})
  // Without a terminal it may come in frames, whose heads are no text.
  const words = text.slice(0, longestReason).replace(/[\u0000-\u001f\u007f-\u009f\ufffd]+/g, ' ')
  return words.trim() || 'it could not be started'
}

const isNoProgram = (words: string): boolean =>
  /executable file not found|no such file or directory|permission denied|not a directory/i.test(words)
