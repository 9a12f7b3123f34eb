import { cutText } from 'busbar/sdk'
import { isUuidSchema } from '../../sdk/schema.js'

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

/** No keyword of a schema: of a query, in which a name may stand several times. */
const repeated = 'repeated'

/** What is wrong with a query: a name that stands twice is a list, which nobody has sent who means a text. */
export const faultsOfQuery = (
  query: unknown,
  errors: readonly SchemaFault[] | null | undefined
): readonly SchemaFault[] | null | undefined =>
  errors?.map(error =>
    error.keyword === 'type' &&
    Array.isArray((query as Readonly<Record<string, unknown>>)[error.instancePath.slice(1)])
      ? { ...error, keyword: repeated }
      : error
  )

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
  const subject = at || `the ${part}`
  const { limit } = error.params
  switch (error.keyword) {
    case 'required':
      return `${fieldOf(error)} is required`
    case repeated:
      return `${subject} is there more than once: give it once`
    case 'type':
      return `${subject} must be ${[error.params.type].flat().map(String).map(withArticle).join(' or ')}`
    case 'enum':
      return `${subject} must be one of ${(error.params.allowedValues as unknown[]).map(String).join(', ')}`
    case 'pattern':
      return isUuidSchema(error.params)
        ? `${subject} must be a UUID in lowercase hyphenated form`
        : `${subject} has characters or a form that is not allowed`
    case 'minLength':
      return Number(limit) === 1
        ? `${subject} must not be empty`
        : `${subject} must have at least ${String(limit)} characters`
    case 'maxLength':
      return `${subject} must have at most ${String(limit)} characters`
    case 'minItems':
      return `${subject} must have at least ${String(limit)} items`
    case 'maxItems':
      return `${subject} must have at most ${String(limit)} items`
    default:
      return `${subject} ${error.message ?? 'is not valid'}`
  }
}

const withArticle = (type: string): string =>
  type === 'null' ? 'null' : /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`
