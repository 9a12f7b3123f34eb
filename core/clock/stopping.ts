import { isProblem, Problem } from 'busbar/sdk'

const code = 'E_STOPPING'

/** What is not done, or not finished, because the platform stops. */
export const stopping = (): Problem =>
  new Problem(
    503,
    code,
    'the platform is stopping; ask again when it is back',
    { remedy: 'ask again when it is back' },
    { 'retry-after': '5' }
  )

export const isStopping = (error: unknown): boolean => isProblem(error) && error.code === code
