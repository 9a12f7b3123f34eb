import type { Readable } from 'node:stream'
import { type Log, withTimeLimit } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from '../engine-client.js'
import { asReadable } from '../output-lines.js'
import { problems } from '../problems.js'
import { type JsonRow, jsonRows } from './json-rows.js'

interface RowsParts {
  readonly engine: EngineClient
  readonly log: Log
}

interface RowsQuestion {
  /** Completes "refused to …": `list containers`. */
  readonly task: string
  readonly path: string
  readonly query?: Readonly<Record<string, string | boolean>>
  /** From the question to the end of the answer. */
  readonly limitMs: number
  readonly signal: AbortSignal
}

/**
 * Asks the engine for a long answer and hands on its rows, one after the other. Rejects with a `Problem` where the engine
 * refuses, is away or stops in the middle, and with the signal's reason once that has aborted.
 */
export async function readRows(
  { engine, log }: RowsParts,
  { task, path, query = {}, limitMs, signal }: RowsQuestion,
  onRow: (row: JsonRow) => void
): Promise<void> {
  const reason = () => problems.answerLate({ task, seconds: limitMs / 1000 })
  await withTimeLimit({ signal, ms: limitMs, reason }, async limited => {
    try {
      const answer = await engine.call(task, async docker => await open(docker, { path, query }, limited), {
        patient: true,
        lists: true
      })
      const rows = jsonRows(answer, leftOut => {
        if (leftOut > 0)
          log.warn({ leftOut, task }, 'what the engine says of some things is too long, and is left out')
      })
      for await (const row of engine.reading(task, rows)) onRow(row)
    } catch (error) {
      limited.throwIfAborted()
      throw error
    }
  })
}

/** dockerode reads the answers of these as a whole. */
async function open(
  docker: Docker,
  { path, query }: Required<Pick<RowsQuestion, 'path' | 'query'>>,
  abortSignal: AbortSignal
): Promise<Readable> {
  const asked = { path: `${path}?`, method: 'GET', options: { ...query }, statusCodes: { 200: true } }
  return await new Promise((resolve, reject) => {
    docker.modem.dial({ ...asked, isStream: true, abortSignal }, (error: unknown, answer: unknown) => {
      if (error === null || error === undefined) resolve(asReadable(answer as NodeJS.ReadableStream))
      else reject(error)
    })
  })
}
