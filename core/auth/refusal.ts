/** Why a caller is refused: a status, a stable code and the words of the contract. */
export interface Refusal {
  readonly status: 401 | 403 | 404
  readonly code: string
  readonly message: string
}

export const refusal = (status: Refusal['status'], code: string, message: string): Refusal =>
  Object.freeze({ status, code, message })
