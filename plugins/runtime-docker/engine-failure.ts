import { isProblem, type Problem } from 'busbar/sdk'
import { problems } from './problems.js'

/** What dockerode throws: an HTTP answer of the engine (`statusCode`) or a socket's failure (`code`). */
export interface EngineError {
  readonly statusCode: number | undefined
  readonly code: string | undefined
  readonly words: string
}

export function readEngineError(error: unknown): EngineError {
  const { statusCode, code, json, message } =
    typeof error === 'object' && error !== null
      ? (error as { statusCode?: unknown; code?: unknown; json?: unknown; message?: unknown })
      : { statusCode: undefined, code: undefined, json: undefined, message: error }
  return {
    statusCode: typeof statusCode === 'number' ? statusCode : undefined,
    code: typeof code === 'string' ? code : undefined,
    words:
      wordsIn(json) ??
      String(message)
        .replace(/^\(HTTP code \d+\) [^-]* - /, '')
        .trim()
  }
}

function wordsIn(json: unknown): string | undefined {
  const isObject = typeof json === 'object' && json !== null && 'message' in json
  return isObject && typeof json.message === 'string' ? json.message.trim() : undefined
}

/** True when the engine answered with this status. */
export const isStatus = (error: unknown, status: number): boolean =>
  readEngineError(error).statusCode === status

/** True when the engine itself could not be talked to, whatever was asked of it. */
export const isUnreachable = (error: unknown): boolean =>
  connectionProblem(readEngineError(error), '', '') !== undefined

/**
 * The problem behind a failed call, in the caller's terms. `task` completes "the Docker Engine refused to …" and
 * "was asked to …".
 */
export function engineProblem(error: unknown, address: string, task: string): Problem {
  if (isProblem(error)) return error
  const read = readEngineError(error)
  return connectionProblem(read, address, task) ?? refusal(read.words, task)
}

/**
 * True for a refusal of an engine, as of 20.10, that lists its images, or measures its disk, while one of them is removed:
 * "layer sha256:… was not found (corruption?)", "no such image".
 */
export const tellsOfRemoval = (error: unknown): boolean =>
  isProblem(error) &&
  error.code === 'E_ENGINE_REFUSED' &&
  /not found \(corruption\?\)|no such image|image not known|unrecognized image ID/i.test(error.message)

function refusal(words: string, task: string): Problem {
  return /no space left on device|disk quota exceeded/i.test(words)
    ? problems.diskFull({ task, reason: words })
    : problems.refused({ task, reason: words })
}

/** How Node says that the head of an answer came, and not the end of it. */
const isCut = ({ code, words }: EngineError): boolean =>
  code === 'ERR_STREAM_PREMATURE_CLOSE' || (code === 'ECONNRESET' && words === 'aborted')

function connectionProblem(error: EngineError, address: string, task: string): Problem | undefined {
  const { statusCode, code } = error
  if (statusCode !== undefined) return undefined
  if (isCut(error)) return problems.answerCut({ address, task }, { reason: 'answer-cut' })
  switch (code) {
    case 'ENOENT':
      return problems.noSocket({ address }, { reason: 'no-socket' })
    case 'ECONNREFUSED':
      return problems.notListening({ address }, { reason: 'not-listening' })
    case 'EACCES':
    case 'EPERM':
      return problems.permissionDenied({ address }, { reason: 'permission' })
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return problems.hostUnknown({ address }, { reason: 'host-unknown' })
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return problems.noAnswer({ address, task }, { reason: 'no-answer' })
    default:
      return undefined
  }
}
