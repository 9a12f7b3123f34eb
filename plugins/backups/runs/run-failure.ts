import { isProblem } from 'busbar/sdk'

const longest = 2_000

/** Why a run failed, in a sentence for people. Whatever is thrown is of a source or a storage, whose errors are for them. */
export function runFailure(error: unknown): string {
  if (isProblem(error)) return error.message
  if (!(error instanceof Error)) return String(error).slice(0, longest)
  const text = error.message.trim() === '' ? error.name : error.message
  return text.slice(0, longest)
}
