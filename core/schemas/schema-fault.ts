/** A fault as JSON schema validators report it. */
interface SchemaFault {
  readonly keyword: string
  /** Where in the data: `/vars/0/key`. */
  readonly instancePath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string | undefined
}

/** The first fault in words that name the field: `name must be string`, `vars/0/key is required`. */
export function explainFault(errors: readonly SchemaFault[] | null | undefined, part: string): string {
  const error = errors?.[0]
  if (error === undefined) return `${part} is not valid`
  const at = error.instancePath.slice(1)
  switch (error.keyword) {
    case 'required':
      return `${[at, String(error.params.missingProperty)].filter(Boolean).join('/')} is required`
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
