import { withRemedy } from 'busbar/sdk'

/** Why a caller is refused: a status, a stable code, the words of the contract, and what helps. */
export interface Refusal {
  readonly status: 401 | 403 | 404
  readonly code: string
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** One whose words are those of the contract, which do not say what helps. */
export const refusal = (status: Refusal['status'], code: string, message: string, remedy?: string): Refusal =>
  Object.freeze({ status, code, message, details: Object.freeze(remedy === undefined ? {} : { remedy }) })

/** One that ends with what helps, as others do. */
export const helpfulRefusal = (
  status: Refusal['status'],
  code: string,
  reason: string,
  remedy: string
): Refusal => refusal(status, code, withRemedy(reason, remedy), remedy)
