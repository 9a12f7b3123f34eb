import {
  askOrLeaveOut,
  type ConfigCheck,
  type ConfigWarning,
  type Contributions,
  cutText,
  type Log
} from 'busbar/sdk'

interface WarningParts {
  readonly checks: Contributions<ConfigCheck>
  /** Takes secrets out of what plugins say. */
  readonly clean: (text: string) => string
  readonly log: Log
}

const checkMs = 5_000
/** Of one plugin. */
const mostWarnings = 50
const longestText = 1_000
const codeForm = /^[a-z][a-z0-9_]{0,63}$/

/** What all plugins find wrong with the configuration of the instance, in the order in which they were asked. */
export async function collectWarnings({ checks, clean, log }: WarningParts): Promise<ConfigWarning[]> {
  const found = await Promise.all(
    checks.entries().map(
      async entry =>
        (await askOrLeaveOut(entry, async check => await check.warnings(), {
          what: 'the configuration warnings',
          takes: 'a list of warnings, each with a code, a message and a remedy',
          take: readWarnings,
          ms: checkMs,
          log
        })) ?? []
    )
  )
  const shown = (text: string): string => clean(cutText(text, longestText))
  return found
    .flat()
    .map(({ code, message, remedy }) => ({ code, message: shown(message), remedy: shown(remedy) }))
}

/** Undefined where the answer is none: it is another plugin's object. */
function readWarnings(answer: unknown): ConfigWarning[] | undefined {
  if (!Array.isArray(answer)) return undefined
  const read = answer.slice(0, mostWarnings).map(readWarning)
  return read.every(warning => warning !== undefined) ? read : undefined
}

function readWarning(value: unknown): ConfigWarning | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { code, message, remedy } = value as Partial<Record<keyof ConfigWarning, unknown>>
  return typeof code === 'string' &&
    codeForm.test(code) &&
    typeof message === 'string' &&
    typeof remedy === 'string'
    ? { code, message, remedy }
    : undefined
}
