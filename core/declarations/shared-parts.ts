import { refusalWords } from './responses.js'

type Json = Readonly<Record<string, unknown>>
type Content = Readonly<Record<string, { readonly schema: Json } | undefined>>

interface Operation {
  readonly parameters: readonly Json[]
  readonly responses: Readonly<Record<string, Json>>
}

/** Statuses by the names under which their answers are shared. */
const statusNames: Readonly<Record<string, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  408: 'RequestTimeout',
  409: 'Conflict',
  413: 'ContentTooLarge',
  415: 'UnsupportedMediaType',
  429: 'TooManyRequests',
  500: 'InternalServerError',
  503: 'ServiceUnavailable'
}
const successNames: Readonly<Record<string, string>> = { 200: '', 201: 'Created', 202: 'Accepted' }
const notModified = '304'

/**
 * Parameters and answers that several operations have, told once. What is said besides of a refusal stays with its
 * operation, as the description of the reference. Codes cannot: a reference has none, so they are told by status.
 */
export class SharedParts {
  readonly parameters: Record<string, Json> = {}
  readonly responses: Record<string, Json> = {}
  readonly #uses = new Map<string, number>()
  readonly #names = new Map<string, string>()

  constructor(operations: readonly Operation[]) {
    for (const { parameters, responses } of operations)
      for (const part of [...parameters, ...Object.values(responses)]) {
        const text = JSON.stringify(part)
        this.#uses.set(text, (this.#uses.get(text) ?? 0) + 1)
      }
  }

  /** The operation with references to what it shares with others. */
  refer<T extends Operation>(operation: T): T {
    const codes = Object.entries(operation.responses).flatMap(([status, response]) =>
      response['x-codes'] === undefined ? [] : [[status, response['x-codes']]]
    )
    return {
      ...operation,
      ...(codes.length === 0 ? {} : { 'x-codes': Object.fromEntries(codes) }),
      parameters: operation.parameters.map(parameter => this.#parameter(parameter)),
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([status, { 'x-codes': _, ...response }]) => [
          status,
          Number(status) < 400 ? this.#success(status, response) : this.#refusal(status, response)
        ])
      )
    }
  }

  #parameter(parameter: Json): Json {
    if (this.#isAlone(parameter)) return parameter
    return {
      $ref: `#/components/parameters/${this.#keep(this.parameters, String(parameter.name), parameter)}`
    }
  }

  #success(status: string, response: Json): Json {
    if (status === notModified && !this.#isAlone(response))
      return { $ref: `#/components/responses/${this.#keep(this.responses, 'NotModified', response)}` }
    const schema = contentOf(response)['application/json']?.schema
    const name = nameOf(schema)
    const ending = successNames[status]
    if (name === undefined || ending === undefined || this.#isAlone(response)) return response
    return { $ref: `#/components/responses/${this.#keep(this.responses, name + ending, response)}` }
  }

  #refusal(status: string, response: Json): Json {
    const name = statusNames[status]
    if (name === undefined || !isError(response)) return response
    const shared = { ...response, description: refusalWords(Number(status)) }
    const reference = { $ref: `#/components/responses/${this.#keep(this.responses, name, shared)}` }
    return response.description === shared.description
      ? reference
      : { ...reference, description: response.description }
  }

  #isAlone(part: Json): boolean {
    return (this.#uses.get(JSON.stringify(part)) ?? 0) < 2
  }

  /** Where the part stands; another one of its name has a number. */
  #keep(parts: Record<string, Json>, wanted: string, part: Json): string {
    const text = JSON.stringify(part)
    const known = this.#names.get(text)
    if (known !== undefined) return known
    let name = wanted
    for (let number = 2; Object.hasOwn(parts, name); number++) name = `${wanted}${number}`
    parts[name] = part
    this.#names.set(text, name)
    return name
  }
}

const contentOf = ({ content = {} }: Json): Content => content as Content

/** `Project` for the schema of that name, `ProjectList` for a list of it. */
function nameOf(schema: Json | undefined): string | undefined {
  const { $ref: reference } = (schema?.items ?? schema ?? {}) as Json
  if (typeof reference !== 'string') return undefined
  return `${reference.slice(reference.lastIndexOf('/') + 1)}${schema?.items === undefined ? '' : 'List'}`
}

/** Whether it has the fields of an error, or is the text of the rate limit: some operations answer otherwise. */
const isError = (response: Json): boolean =>
  Object.values(contentOf(response)).every(
    media => media?.schema.$ref === '#/components/schemas/Error' || media?.schema.type === 'string'
  )
