/** What is wrong with one field of a body. */
export interface FieldFault {
  /** The field with its place: `vars/0/key`. */
  readonly field: string
  /** A sentence that says what is wrong with it. */
  readonly error: string
}

/** An answer that is no success, in the platform's own words. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** The field that is wrong, with its place: `vars/0/key`; the first one where several are. */
  readonly field: string | undefined
  /** All that is wrong with a body, one for each field; empty where it is not about fields. */
  readonly faults: readonly FieldFault[]
  /** What helps, in a sentence, where the platform knows it. */
  readonly remedy: string | undefined

  constructor(
    /** `POST /api/projects` */
    readonly operation: string,
    readonly status: number,
    /** Stable, such as `E_NOT_FOUND`; `E_RATE_LIMITED` for a 429 in plain text, `E_UNKNOWN` for what is no answer of the platform. */
    readonly code: string,
    /** The sentence that says what is wrong and what to do. */
    readonly error: string,
    /** What else the body says, by name. */
    readonly details: Readonly<Record<string, unknown>>,
    /** How long to wait, in seconds, when the platform says so. */
    readonly retryAfterSeconds: number | undefined,
    /** Names this request in the platform's log. */
    readonly requestId: string | undefined
  ) {
    const remedy = textIn(details.remedy)
    // Most sentences end with what helps.
    const help = remedy === undefined || error.includes(remedy) ? '' : ` (${remedy})`
    super(`${operation} answered ${status} ${code}: ${error}${help}`)
    this.field = textIn(details.field)
    this.faults = Array.isArray(details.faults) ? (details.faults as FieldFault[]) : []
    this.remedy = remedy
  }

  /** Rejects with what the connection says when that breaks before the end of the answer. */
  static async from(operation: string, response: Response): Promise<ApiError> {
    const text = await response.text()
    const { error, code, ...details } = objectIn(text)
    return new ApiError(
      operation,
      response.status,
      textIn(code) ?? (response.status === 429 ? 'E_RATE_LIMITED' : 'E_UNKNOWN'),
      textIn(error) ?? foreignText(response, text),
      details,
      retryAfterOf(response),
      response.headers.get('x-request-id') ?? undefined
    )
  }
}

/** Characters of an answer that is not the platform's, as the page of a proxy is. */
const longestForeign = 500

/** What stands in for the sentence where the platform has not answered. */
function foreignText({ status, headers }: Response, text: string): string {
  const location = headers.get('location')
  if (status >= 300 && status < 400 && location !== null)
    return `it leads to ${location}: is that where the platform is? Then give that as url`
  const trimmed = text.trim()
  return trimmed.length > longestForeign ? `${trimmed.slice(0, longestForeign)} … (cut)` : trimmed
}

/** The seconds of `Retry-After`, which may be a date too. */
export function retryAfterOf({ headers }: Response): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  if (/^\d+$/.test(text)) return Number(text)
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000))
}

const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
