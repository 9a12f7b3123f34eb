import { STATUS_CODES } from 'node:http'
import { type FailureKind, RegistryFailure } from './registry-failure.js'

/** An answer that does not hold what was asked for. */
export interface BadAnswer {
  readonly status: number
  /** The codes of its JSON; undefined when it is no answer of a registry at all. */
  readonly codes: readonly string[] | undefined
  /** `elsewhere`: it comes from where the registry has redirected to, which knows nothing of accounts. */
  readonly by: 'registry' | 'token service' | 'elsewhere'
  readonly asked: 'manifest' | 'blob'
  /** It was asked with a token that its token service has given out for an account. */
  readonly isKnownAccount: boolean
}

const who = {
  registry: 'it',
  'token service': 'its token service',
  elsewhere: 'what it redirects to'
} as const

export function answerFailure(answer: BadAnswer): RegistryFailure {
  const { status, by } = answer
  const words = `${who[by]} answers ${`${status} ${STATUS_CODES[status] ?? ''}`.trim()}`
  return new RegistryFailure(kindOf(answer), words)
}

function kindOf({ status, codes: told, by, asked, isKnownAccount }: BadAnswer): FailureKind {
  const codes = told ?? []
  if (status === 429 || codes.includes('TOOMANYREQUESTS')) return 'limit'
  if (status >= 500 || by === 'elsewhere') return 'failing'
  if (status === 401) return isKnownAccount ? 'forbidden' : 'credentials'
  if (status === 403 || codes.includes('DENIED')) return 'forbidden'
  if (status !== 404 || by !== 'registry' || told === undefined) return 'answer'
  if (asked === 'blob') return 'broken'
  return codes.includes('NAME_UNKNOWN') ? 'noRepository' : 'noImage'
}

/** The codes in what a registry says with a failure; nothing at all is said without any. */
export function errorCodes(body: string, isMarked: boolean): readonly string[] | undefined {
  if (body.trim() === '') return []
  try {
    const { errors } = JSON.parse(body) as { readonly errors?: unknown }
    if (Array.isArray(errors))
      return errors.flatMap((error: unknown) => {
        const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
        return typeof code === 'string' ? [code] : []
      })
  } catch {
    // A page, or half an answer.
  }
  return isMarked ? [] : undefined
}
