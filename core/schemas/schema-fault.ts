import { cutText } from 'busbar/sdk'

/** A fault as JSON schema validators report it. */
interface SchemaFault {
  readonly keyword: string
  /** Where in the data: `/vars/0/key`. */
  readonly instancePath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string | undefined
}

/** One thing that is wrong, and where: `vars/0/key`, empty for the whole. */
interface FieldFault {
  readonly field: string
  readonly error: string
}

/** So many are told of: who sends more of them sends the same one again and again. */
const mostFaults = 20
/** Characters of a field and of what is said of it: its name may be the sender's. */
export const longestField = 300
/** Of them in the sentence. */
const mostInSentence = 3

/**
 * All faults, one for each field, and a sentence of the first few. Where a value may be of several forms, the fault of the
 * form that comes first is told.
 */
export function explainFaults(
  errors: readonly SchemaFault[] | null | undefined,
  part: string
): { readonly message: string; readonly faults: readonly FieldFault[] } {
  const faults = new Map<string, string>()
  for (const error of errors ?? []) {
    const field = fieldOf(error)
    if (!faults.has(field)) faults.set(field, explainOne(error, part))
    if (faults.size === mostFaults) break
  }
  const told = [...faults].map(([field, error]) => ({
    field: cutText(field, longestField),
    error: cutText(error, 2 * longestField)
  }))
  const sentences = told.slice(0, mostInSentence).map(({ error }) => error)
  const more = told.length - sentences.length
  return {
    message:
      told.length === 0
        ? `${part} is not valid`
        : `${sentences.join('; ')}${more > 0 ? `; and ${more} more` : ''}`,
    faults: told
  }
}

function fieldOf({ keyword, instancePath, params }: SchemaFault): string {
  const at = instancePath.slice(1)
  return keyword === 'required' ? [at, String(params.missingProperty)].filter(Boolean).join('/') : at
}

/** The first fault in words that name the field: `name must be string`, `vars/0/key is required`. */
export function explainFault(errors: readonly SchemaFault[] | null | undefined, part: string): string {
  const error = errors?.[0]
  return error === undefined ? `${part} is not valid` : explainOne(error, part)
}

function explainOne(error: SchemaFault, part: string): string {
  const at = error.instancePath.slice(1)
  switch (error.keyword) {
    case 'required':
      return `${fieldOf(error)} is required`
    case 'type':
      return `${at || `the ${part}`} must be ${[error.params.type].flat().map(String).map(withArticle).join(' or ')}`
    case 'enum':
      return `${at || `the ${part}`} must be one of ${(error.params.allowedValues as unknown[]).map(String).join(', ')}`
    case 'pattern':
      return `${at || `the ${part}`} has characters or a form that is not allowed`
    case 'minLength':
      return Number(error.params.limit) === 1
        ? `${at} must not be empty`
        : `${at} must have at least ${String(error.params.limit)} characters`
    case 'maxLength':
      return `${at} must have at most ${String(error.params.limit)} characters`
    default:
      return `${at || `the ${part}`} ${error.message ?? 'is not valid'}`
  }
}

const withArticle = (type: string): string =>
  type === 'null' ? 'null' : /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`
