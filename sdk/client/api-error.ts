/** An answer that is no success, in the platform's own words. */
export class ApiError extends Error {
  override readonly name = 'ApiError'

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
    super(`${operation} answered ${status} ${code}: ${error}`)
  }

  static async from(operation: string, response: Response): Promise<ApiError> {
    const text = await response.text()
    const { error, code, ...details } = objectIn(text)
    const retryAfter = response.headers.get('retry-after')
    return new ApiError(
      operation,
      response.status,
      typeof code === 'string' ? code : response.status === 429 ? 'E_RATE_LIMITED' : 'E_UNKNOWN',
      typeof error === 'string' ? error : text.trim(),
      details,
      retryAfter === null ? undefined : Number(retryAfter),
      response.headers.get('x-request-id') ?? undefined
    )
  }
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
